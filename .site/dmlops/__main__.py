"""Entry point of ``python -m dmlops`` and of the installed command ``dmlops``."""

# PYTHON_ARGCOMPLETE_OK: by this, shells see that the program completes.
import sys

from dmlops._cli import main

if __name__ == "__main__":
    sys.exit(main())
