"""`python -m dpstudy`, which is the command `dpstudy`."""

import sys

from dpstudy.command.main import main

sys.exit(main())
