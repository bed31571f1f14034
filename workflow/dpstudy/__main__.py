"""`python -m dpstudy`, the same as the command `dpstudy`."""

import sys

from dpstudy.command.main import main

sys.exit(main())
