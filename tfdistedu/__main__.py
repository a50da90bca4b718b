"""`python -m tfdistedu` is the command `tfdistedu`."""

from tfdistedu.cli import main

if __name__ == "__main__":
    main()
