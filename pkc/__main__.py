"""`python -m pkc` is the `pkc` command."""

import sys

from pkc.cli.main import main

sys.exit(main())
