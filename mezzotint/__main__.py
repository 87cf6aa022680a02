"""`python -m mezzotint`: runs the command line; what the commands do lives in cli."""

from mezzotint.cli import app

if __name__ == "__main__":
    app()
