"""Entry point of ``python -m dmlops`` and of the installed command ``dmlops``."""

import sys

from dmlops._cli import main

if __name__ == "__main__":
    sys.exit(main())
