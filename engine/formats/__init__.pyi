from . import bruker_tdf as bruker_tdf
from . import letters as letters
from . import spectra_content as spectra_content
from . import translation as translation
from . import writing as writing
from .protein_files import read_proteins as read_proteins
from .proteins import Proteins as Proteins
from .reading import read_spectra as read_spectra
