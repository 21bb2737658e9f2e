from . import cigars as cigars
