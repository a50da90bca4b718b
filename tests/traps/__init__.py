"""What TensorFlow and Keras do silently wrong under a strategy, one topic a file, and beside it our way.

Tests marked `upstream` need TensorFlow, Keras and NumPy alone. They assert the *right* value, and are strict xfail
where upstream gives another one (see `oracle.right`). Tests without the mark hold our way to the same value; they
import tfdistedu inside, so that a break of ours does not hide what upstream does. (The server behind `fresh_processes`
stands on `tfdistedu.quiet`, whose private names test_private_names.py guards.)
`make traps-latest` runs both on the newest versions (see `report_changes`).
"""
