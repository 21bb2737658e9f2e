"""Citations of the program and of the methods that it implements, as text and BibTeX."""

from dataclasses import dataclass

from proteoscope.engine.version import VERSION

__all__ = ["CITATIONS", "Citation", "bibtex", "citation_text"]


@dataclass(frozen=True)
class Citation:
    """A work to cite.

    Attributes
    ----------
    key
        BibTeX key.
    kind
        BibTeX entry type, such as ``article``.
    of
        Part of the program that implements the method of the cited work.
    fields
        BibTeX fields in order. Persons are written ``Family, Given`` and joined with `` and ``.
    """

    key: str
    kind: str
    of: str
    fields: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """Citation as plain text for a list of references."""
        by_name = dict(self.fields)
        names = [_short(name) for name in by_name["author"].split(" and ")]
        position = by_name.get("journal") or by_name.get("school") or by_name.get("note", "")
        where = f"{position} {by_name['volume']}:{by_name['pages']}" if "volume" in by_name else position
        if self.kind == "phdthesis":
            where = f"Doctoral thesis, {where}"
        link = f" https://doi.org/{by_name['doi']}" if "doi" in by_name else f" {by_name['url']}" if "url" in by_name else ""
        year = f" ({by_name['year']})" if "year" in by_name else ""
        return f"{', '.join(names)}{year}. {by_name['title'].replace('{', '').replace('}', '')}. {where}.{link}"

    @property
    def bibtex(self) -> str:
        """Entry in BibTeX format."""
        lines = [f"  {name} = {{{value}}}" for name, value in self.fields]
        return f"@{self.kind}{{{self.key},\n" + ",\n".join(lines) + "\n}"


CITATIONS = (
    Citation(
        "Proteoscope",
        "software",
        "the program",
        (
            ("author", "{The Proteoscope developers}"),
            ("title", "{Proteoscope}: a desktop program for protein evidence"),
            ("note", f"Version {VERSION}"),
            ("version", VERSION),
        ),
    ),
    Citation(
        "Li2014",
        "article",
        "scores of identification: the spectral dot product",
        (
            ("author", "Li, You and Chi, Hao and Xia, Leihao and Chu, Xiaowen"),
            ("title", "Accelerating the scoring module of mass spectrometry-based peptide identification using {GPUs}"),
            ("journal", "BMC Bioinformatics"),
            ("year", "2014"),
            ("volume", "15"),
            ("pages", "121"),
            ("doi", "10.1186/1471-2105-15-121"),
        ),
    ),
    Citation(
        "Li2015",
        "phdthesis",
        "identification, clustering and explanation of spectra",
        (
            ("author", "Li, You"),
            ("title", "High throughput mass spectrometry based peptide identification search engine by {GPUs}"),
            ("school", "Hong Kong Baptist University"),
            ("year", "2015"),
        ),
    ),
    Citation(
        "Carroll2020",
        "phdthesis",
        "unlisted modifications, reads with few gaps, and the cost model",
        (
            ("author", "Carroll, Thomas"),
            ("title", "Graphics Processing Units: Abstract Modelling and Applications in Bioinformatics"),
            ("school", "University of Liverpool"),
            ("year", "2020"),
            ("url", "https://livrepository.liverpool.ac.uk/3089482/"),
        ),
    ),
    Citation(
        "Liu2013",
        "article",
        "sequence search",
        (
            ("author", "Liu, Yongchao and Wirawan, Adrianto and Schmidt, Bertil"),
            (
                "title",
                "{CUDASW++} 3.0: accelerating {Smith-Waterman} protein database search by coupling {CPU} and {GPU} {SIMD} instructions",
            ),
            ("journal", "BMC Bioinformatics"),
            ("year", "2013"),
            ("volume", "14"),
            ("pages", "117"),
            ("doi", "10.1186/1471-2105-14-117"),
        ),
    ),
    Citation(
        "Mrozek2014",
        "article",
        "structure search",
        (
            ("author", "Mrozek, Dariusz and Brożek, Miłosz and Małysiak-Mrozek, Bożena"),
            ("title", "Parallel implementation of {3D} protein structure similarity searches using a {GPU} and the {CUDA}"),
            ("journal", "Journal of Molecular Modeling"),
            ("year", "2014"),
            ("volume", "20"),
            ("pages", "2067"),
            ("doi", "10.1007/s00894-014-2067-1"),
        ),
    ),
)
"""Citations of the program and of the five works whose methods its searches implement."""


def citation_text() -> str:
    """Return all citations as text, each with the part of the program that implements it."""
    return "\n\n".join(f"{citation.of[:1].upper()}{citation.of[1:]}\n{citation.text}" for citation in CITATIONS) + "\n"


def bibtex() -> str:
    """Return all citations as BibTeX."""
    return "\n\n".join(citation.bibtex for citation in CITATIONS) + "\n"


def _short(name: str) -> str:
    """Abbreviate ``Małysiak-Mrozek, Bożena`` to ``Małysiak-Mrozek B``; names in braces are unchanged."""
    family, comma, given = name.partition(", ")
    return f"{family} {''.join(part[0] for part in given.split())}" if comma else name.strip("{}")
