"""`python -m hipress` is the `hipress` command."""

from hipress.cli.main import main

if __name__ == "__main__":
    main()
