"""`python -m loopwatch` is the command `loopwatch`."""

from loopwatch.cli.main import main

if __name__ == "__main__":
    main()
