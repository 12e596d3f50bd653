"""`python -m compilewatch`."""

import sys

from compilewatch.cli import main

sys.exit(main())
