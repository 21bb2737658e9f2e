"""Small hand-written files of annotated protein formats."""

from __future__ import annotations

__all__ = [
    "EMBL",
    "FASTA_OF_UNIPROT",
    "GENBANK",
    "GENBANK_PROTEIN",
    "PIR",
    "SEQUENCES",
    "SWISS_PROT",
    "UNIPROT_XML",
    "swiss_prot_entry",
]

SEQUENCES = {
    "Q00001": "MKWVTFISLLLLFSSAYSRGVFRRDTHKSEIAHRFKDLGEEHFKGLVLIAFSQYLQQCPFDEHVK",
    "Q00002": "MADEAALALQPGGSPSAAGADREAASSPAGEPLRKRPRRDGPGLERSPGEPGGAAPER",
}


def _in_tens(sequence: str, width: int = 60) -> list[str]:
    lines = [sequence[i : i + width] for i in range(0, len(sequence), width)]
    return [" ".join(line[i : i + 10] for i in range(0, len(line), 10)) for line in lines]


def swiss_prot_entry(accession: str, name: str, sequence: str, features: str = "", *, status: str = "Reviewed") -> str:
    """Return an entry of UniProt's text."""
    lines = "\n".join(f"     {line}" for line in _in_tens(sequence))
    return f"""ID   {name:<24}{status};{len(sequence):>12} AA.
AC   {accession}; Z99999;
DT   01-NOV-1997, integrated into UniProtKB/Swiss-Prot.
DT   11-JAN-2001, sequence version 3.
DT   19-JAN-2010, entry version 95.
DE   RecName: Full=Protein {name.split("_")[0].lower()} {{ECO:0000305}};
DE            Short=P;
DE   Flags: Fragment;
GN   Name=gene{accession[-1]} {{ECO:0000312|HGNC:1}}; Synonyms=other;
OS   Bos taurus (Bovine).
OC   Eukaryota; Metazoa.
OX   NCBI_TaxID=9913 {{ECO:0000312}};
RN   [1]
RP   NUCLEOTIDE SEQUENCE [MRNA].
RX   PubMed=1; DOI=10.1/x;
RA   Somebody A.;
RT   "A title.";
RL   J. Biol. 1:1-2(1990).
CC   -!- FUNCTION: Does something; ID   no entry.
DR   EMBL; X1; AAA1.1; -; mRNA.
PE   1: Evidence at protein level;
KW   Signal.
{features}SQ   SEQUENCE   {len(sequence)} AA;  7000 MW;  0123456789ABCDEF CRC64;
{lines}
//
"""


_FEATURES = """FT   SIGNAL          1..18
FT                   /evidence="ECO:0000255"
FT   CHAIN           19..65
FT                   /note="Protein one"
FT                   /id="PRO_0000001"
FT   DOMAIN          20..>60
FT                   /note="A domain of a name that goes on in the next
FT                   line; truncated"
FT   MOD_RES         30
FT                   /note="Phosphoserine"
FT                   /evidence="ECO:0000269|PubMed:1"
FT   VARIANT         40
FT                   /note="E -> K (in a breed; dbSNP:rs1)"
FT                   /id="VAR_000001"
FT   DISULFID        55..58
FT   HELIX           ?..12
FT   STRAND          3..7
FT   NON_TER         65
FT   MOD_RES         Q00001-2:5
FT                   /note="Phosphothreonine"
"""
SWISS_PROT = swiss_prot_entry("Q00001", "ONE_BOVIN", SEQUENCES["Q00001"], _FEATURES) + swiss_prot_entry(
    "Q00002", "TWO_BOVIN", SEQUENCES["Q00002"], status="Unreviewed"
)
FASTA_OF_UNIPROT = (
    f">sp|Q00001|ONE_BOVIN Protein one (Fragment) OS=Bos taurus OX=9913 GN=gene1 PE=1 SV=3\n{SEQUENCES['Q00001']}\n"
    f">tr|Q00002|TWO_BOVIN Protein two (Fragment) OS=Bos taurus OX=9913 GN=gene2 PE=1 SV=3\n{SEQUENCES['Q00002']}\n"
)


def _xml_feature(kind: str, place: str, text: str = "", inside: str = "") -> str:
    first, _, last = place.partition("..")

    def position(tag: str, at: str) -> str:
        if at == "?":
            return f'<{tag} status="unknown"/>'
        status = ' status="greater than"' if at.startswith(">") else ""
        return f'<{tag} position="{at.lstrip(">")}"{status}/>'

    location = position("begin", first) + position("end", last) if last else position("position", first)
    attribute = f' description="{text}"' if text else ""
    return f'<feature type="{kind}"{attribute}>{inside}<location>{location}</location></feature>\n'


def _xml_entry(accession: str, name: str, dataset: str, sequence: str, features: str) -> str:
    return f"""<entry dataset="{dataset}" created="1997-11-01" modified="2010-01-19" version="95">
<accession>{accession}</accession><accession>Z99999</accession>
<name>{name}</name>
<protein><recommendedName><fullName>Protein {name.split("_")[0].lower()}</fullName></recommendedName></protein>
<gene><name type="primary">gene{accession[-1]}</name></gene>
<organism><name type="scientific">Bos taurus</name><name type="common">Bovine</name><dbReference type="NCBI Taxonomy" id="9913"/></organism>
<comment type="function"><text>Does &lt;something&gt;</text></comment>
<proteinExistence type="evidence at protein level"/>
{features}<sequence length="{len(sequence)}" mass="7000" checksum="0" modified="2001-01-11" version="3" fragment="single">{sequence[:30]}
{sequence[30:]}</sequence>
</entry>
"""


UNIPROT_XML = f"""<?xml version="1.0" encoding="UTF-8"?>
<uniprot xmlns="https://uniprot.org/uniprot" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
{
    _xml_entry(
        "Q00001",
        "ONE_BOVIN",
        "Swiss-Prot",
        SEQUENCES["Q00001"],
        "".join(
            (
                _xml_feature("signal peptide", "1..18"),
                _xml_feature("chain", "19..65", "Protein one"),
                _xml_feature("domain", "20..&gt;60".replace("&gt;", ">"), "A domain of a name that goes on in the next line; truncated"),
                _xml_feature("modified residue", "30", "Phosphoserine"),
                _xml_feature("sequence variant", "40", "in a breed; dbSNP:rs1", "<original>E</original><variation>K</variation>"),
                _xml_feature("disulfide bond", "55..58"),
                _xml_feature("helix", "?..12"),
                _xml_feature("strand", "3..7"),
                _xml_feature("non-terminal residue", "65"),
            )
        ),
    )
}{_xml_entry("Q00002", "TWO_BOVIN", "TrEMBL", SEQUENCES["Q00002"], "")}<copyright>
Copyrighted by the UniProt Consortium
</copyright>
</uniprot>
"""

GENBANK_PROTEIN = f"""LOCUS       NP_000001                 65 aa            linear   MAM 15-NOV-2007
DEFINITION  protein one [Bos taurus].
ACCESSION   NP_000001
VERSION     NP_000001.2
KEYWORDS    .
SOURCE      Bos taurus (cattle)
  ORGANISM  Bos taurus
            Eukaryota.
FEATURES             Location/Qualifiers
     source          1..65
                     /organism="Bos taurus"
     Protein         1..65
                     /product="protein one"
     sig_peptide     1..18
     mat_peptide     19..65
                     /product="protein one"
     Region          20..>60
                     /region_name="A domain"
     Site            30
                     /site_type="phosphorylation"
     Bond            bond(55,58)
                     /bond_type="disulfide"
     SecStr          3..7
                     /sec_str_type="sheet"
ORIGIN
        1 {_in_tens(SEQUENCES["Q00001"].lower())[0]}
       61 {_in_tens(SEQUENCES["Q00001"].lower())[1]}
//
"""

CONTIG = "ATGAAATGGGTTACCTTCATTTAACCCGGGTTAAGCACGAAACTGCAT"
"""Codes on its forward strand for MKWVTFI from 1, and on its reverse strand, from its end on, for MQFRA."""

GENBANK = f"""LOCUS       CTG1                      48 bp    DNA     linear   BCT 15-NOV-2007
DEFINITION  A contig.
ACCESSION   CTG1
VERSION     CTG1.1
KEYWORDS    .
SOURCE      Toy bacterium
  ORGANISM  Toy bacterium
            Bacteria.
FEATURES             Location/Qualifiers
     source          1..48
                     /organism="Toy bacterium"
     gene            1..24
                     /gene="mk"
     CDS             1..24
                     /gene="mk"
                     /product="first protein"
                     /protein_id="TOY1.1"
                     /transl_table=11
                     /translation="MKWVTFI"
     CDS             complement(34..48)
                     /locus_tag="TOY_2"
                     /note="second protein"
                     /translation="MQFRA"
     CDS             25..33
                     /pseudo
ORIGIN
        1 {_in_tens(CONTIG.lower())[0]}
//
"""

EMBL = f"""ID   CTG1; SV 1; linear; genomic DNA; STD; PRO; 48 BP.
XX
AC   CTG1;
XX
DE   A contig.
XX
OS   Toy bacterium
OC   Bacteria.
XX
FH   Key             Location/Qualifiers
FH
FT   source          1..48
FT                   /organism="Toy bacterium"
FT   CDS             1..24
FT                   /gene="mk"
FT                   /product="first protein"
FT                   /protein_id="TOY1.1"
FT                   /translation="MKWVTFI"
FT   CDS             complement(34..48)
FT                   /locus_tag="TOY_2"
FT                   /note="second protein"
FT                   /translation="MQFRA"
XX
SQ   Sequence 48 BP; 14 A; 11 C; 10 G; 13 T; 0 other;
     {_in_tens(CONTIG.lower())[0]}        48
//
"""

PIR = f""">P1;ONE
Protein one
 {SEQUENCES["Q00001"][:40]}
 {SEQUENCES["Q00001"][40:]}*

>F1;TWO
Protein two
{SEQUENCES["Q00002"]}*
C;Species: unknown
"""
