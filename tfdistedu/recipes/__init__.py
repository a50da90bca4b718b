"""Standalone scripts to copy into real work: they import TensorFlow, Keras and NumPy, and nothing from here.

Each script is complete in one file, because it is meant to be taken away: the few lines that choose the devices stand
in all of them. Each says in its head what it shows, how to run it and which trap it avoids; has its data in one
`make_data()`; and checks itself, with exit status 1 when the check fails.

    tfdistedu recipe list
    tfdistedu recipe copy mirrored_custom_loop

The scripts are found as files and never imported by this package.
"""
