"""Settings of a test run, put in place before Django reads them; COMPILEWATCH_TEST_DATABASE picks sqlite (default) or postgresql."""

import atexit
import os
import shutil
import tempfile
from pathlib import Path

from hypothesis import settings

DATA = Path(tempfile.mkdtemp(prefix="compilewatch-test-"))
OWNER = os.getpid()
DATABASE = os.environ.get("COMPILEWATCH_TEST_DATABASE", "sqlite")

for name in [name for name in os.environ if name.startswith("COMPILEWATCH_") and not name.startswith("COMPILEWATCH_TEST_")]:
    del os.environ[name]

os.environ["COMPILEWATCH_DATA"] = str(DATA)
if DATABASE == "postgresql":
    user, host, port = os.environ.get("PGUSER", "postgres"), os.environ.get("PGHOST", "127.0.0.1"), os.environ.get("PGPORT", "5432")
    os.environ["COMPILEWATCH_DATABASE_URL"] = f"postgresql://{user}@{host}:{port}/compilewatch_{os.getpid()}"


@atexit.register
def data_remove() -> None:
    """Removes what the run wrote; a forked child leaves it to its parent."""
    if os.getpid() == OWNER:
        shutil.rmtree(DATA, ignore_errors=True)


# A slow machine is not a failing test.
settings.register_profile("compilewatch", deadline=None)
settings.load_profile("compilewatch")
