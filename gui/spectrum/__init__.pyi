from . import mirror_view as mirror_view
from . import spectrum_view as spectrum_view
