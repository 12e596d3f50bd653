"""`python -m compilewatch`."""

import sys

from compilewatch.cli.main import main

sys.exit(main())
