from . import comparison_tables as comparison_tables
from . import estimates as estimates
from . import finished_run as finished_run
from . import glossary as glossary
from . import predictions as predictions
from . import run_account as run_account
from . import run_comparison as run_comparison
from . import run_report as run_report
