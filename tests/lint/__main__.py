"""`python -m tests.lint PATH...`: prints each violation of the language rules; status 1 if any."""

import sys
from pathlib import Path

from tests.lint.language import find_words

violations = [line for path in sys.argv[1:] for line in find_words(Path(path))]
print("\n".join(violations) or "Language: no violation.")
sys.exit(bool(violations))
