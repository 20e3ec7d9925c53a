"""Entry point of ``python -m dmlops`` and of the installed command ``dmlops``."""

# PYTHON_ARGCOMPLETE_OK is the marker that argcomplete's global completion searches for.
import sys

from dmlops._cli import main

if __name__ == "__main__":
    sys.exit(main())
