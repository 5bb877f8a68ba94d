"""`python -m winnow.cli`: the command where its script is not on the path."""

from winnow.cli import main

if __name__ == "__main__":
    main()
