from . import conversion as conversion
from . import fragment_intensities as fragment_intensities
from . import run_tables as run_tables
