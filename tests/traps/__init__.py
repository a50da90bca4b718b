"""What TensorFlow and Keras do silently wrong under a strategy, one topic a file, and beside it our way.

Tests marked `upstream` need TensorFlow, Keras and NumPy alone. They assert the *right* value, and are strict xfail
where upstream gives another one (see `oracle.right`). Tests without the mark hold our way to the same value; they
import tfdistedu inside, so that the upstream half also runs where tfdistedu cannot be imported.
`make traps-latest` runs both on the newest versions (see `report_changes`).
"""
