from . import comparison_view as comparison_view
from . import run_page as run_page
