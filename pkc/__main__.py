"""`python -m pkc` is the `pkc` command."""

import sys

from pkc.cli import main

sys.exit(main())
