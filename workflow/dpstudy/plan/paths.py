"""The path of every file of a study, each defined once, with the wildcards of the rule that makes it.

>>> METRICS.format(dataset="digits", features="pixels", entry="ls", epsilon="1")
'results/cells/digits/pixels/ls/eps=1/metrics.json'

A study is run in the folder that these paths start from. What trains a cell does not import this module: another table
would make every cell stale. Jobs are told their paths by their rules.
"""

RESULTS = "results"
CELL = "{dataset}/{features}/{entry}/eps={epsilon}"

# Images and labels of every data set, private or public.
SOURCE = f"{RESULTS}/data/{{source}}"
DATA = f"{SOURCE}/{{split}}"
DATA_MANIFEST = f"{DATA}/manifest.json"
DATA_SHARD = f"{DATA}/part-{{shard}}.parquet"

# Which images a public set shares with private ones.
DEDUP = f"{RESULTS}/dedup/{{public}}"
DESCRIPTION = f"{RESULTS}/dedup/images/{{source}}/{{split}}/part-{{shard}}.safetensors"
BASIS = f"{DEDUP}/basis.safetensors"
CANDIDATES = f"{DEDUP}/candidates/{{split}}/part-{{shard}}.safetensors"
COPIES = f"{DEDUP}/parts/{{dataset}}/{{split}}/part-{{shard}}.parquet"
CALIBRATION = f"{DEDUP}/calibration/{{dataset}}.json"
MATCHES = f"{DEDUP}/matches.parquet"
MATCHES_PICTURE = f"{DEDUP}/matches.png"
KEPT = f"{DEDUP}/kept.parquet"
DEDUP_REPORT = f"{DEDUP}/report.json"

# What is learned from public sets.
BACKBONES = f"{RESULTS}/backbones"
BACKBONE = f"{BACKBONES}/{{backbone}}"
BACKBONE_MODEL = f"{BACKBONE}/model.safetensors"
BACKBONE_CARD = f"{BACKBONE}/card.json"
BACKBONE_CHECKPOINT = f"{BACKBONE}/checkpoint.safetensors"
PACKAGED = f"{BACKBONES}/{{package}}"  # weights from a Python package
PACKAGED_MODEL = f"{PACKAGED}/model.safetensors"
PACKAGED_CARD = f"{PACKAGED}/card.json"
FIT = f"{RESULTS}/fits/{{fit}}"
PROJECTION = f"{FIT}/projection.safetensors"
FIT_CARD = f"{FIT}/card.json"
FIT_POINTS = f"{FIT}/points.safetensors"

# Features, and sums over them.
FEATURES = f"{RESULTS}/features/{{dataset}}/{{features}}/{{split}}"
FEATURES_MANIFEST = f"{FEATURES}/manifest.json"
FEATURES_SHARD = f"{FEATURES}/part-{{shard}}.parquet"
SUMS_NAME = "{dataset}/{features}/{split}/clip={clip}/{grams}"
SUMS = f"{RESULTS}/private/statistics/{SUMS_NAME}.safetensors"
SUMS_SHARE = f"{RESULTS}/private/statistics/{SUMS_NAME}/share-{{share}}.safetensors"

# Cells; of deep entries each seed is a run of its own.
TRIALS = f"{RESULTS}/tuning/{CELL}/trials.parquet"
CELLS = f"{RESULTS}/cells"
CELL_FOLDER = f"{CELLS}/{CELL}"
SEED_FOLDER = f"{RESULTS}/runs/{CELL}/seed={{seed}}"
RUN, SEED_RUN = (f"{folder}/run.json" for folder in (CELL_FOLDER, SEED_FOLDER))
SCORES, SEED_SCORES = (f"{folder}/scores.parquet" for folder in (CELL_FOLDER, SEED_FOLDER))
LEDGER, SEED_LEDGER = (f"{folder}/ledger.json" for folder in (CELL_FOLDER, SEED_FOLDER))
MODEL, SEED_MODEL = (f"{folder}/model.safetensors" for folder in (CELL_FOLDER, SEED_FOLDER))
CURVE, SEED_CURVE = (f"{folder}/curve.parquet" for folder in (CELL_FOLDER, SEED_FOLDER))
SEED_CHECKPOINT = f"{SEED_FOLDER}/checkpoint.safetensors"
METRICS = f"{CELL_FOLDER}/metrics.json"
AUDIT = f"{RESULTS}/audit/{CELL}/audit.json"
BLACK_BOX = f"{RESULTS}/audit/{CELL}/black-box.json"
RELEASES = f"{RESULTS}/release"
BUNDLE = f"{RELEASES}/{CELL}"

# What cells add up to.
CERTIFICATE = f"{RESULTS}/privacy/certificates/{{dataset}}.json"
REPLAYS = f"{RESULTS}/privacy/replays/{{dataset}}.json"
TOTAL = f"{RESULTS}/privacy/total.json"
SUMMARY_CSV = f"{RESULTS}/summary.csv"
SUMMARY = f"{RESULTS}/summary.parquet"
TABLE_TEX = f"{RESULTS}/tables/{{table}}.tex"
TABLE_CSV = f"{RESULTS}/tables/{{table}}.csv"
FIGURE_PDF = f"{RESULTS}/figures/{{figure}}.pdf"
FIGURE_PNG = f"{RESULTS}/figures/{{figure}}.png"
FIGURE_CSV = f"{RESULTS}/figures/{{figure}}.csv"
FIGURE_SVG = f"{RESULTS}/figures/{{figure}}.svg"
CLAIMS = f"{RESULTS}/claims/{{paper}}.json"
REPORT = f"{RESULTS}/report/index.html"
PAPER_TEX = f"{RESULTS}/tables/all.tex"
PAPER_PDF = f"{RESULTS}/tables/all.pdf"

# What is known of jobs.
LOGS = f"{RESULTS}/logs"
BENCHMARKS = f"{RESULTS}/benchmarks"
GRAPH = f"{BENCHMARKS}/graph.json"  # which rules fed which
CODE_LIST = f"{RESULTS}/code/{{script}}/{{method}}.sha256"


def log(rule: str, names: str) -> str:
    """The path of a job's log; wildcards distinguish the jobs of a rule.

    >>> log("extract_shard", "{dataset}/{shard}")
    'results/logs/extract_shard/{dataset}/{shard}.log'
    """
    return f"{LOGS}/{rule}/{names}.log"


def benchmark(rule: str, names: str) -> str:
    """The path of a job's benchmark file (run time and memory)."""
    return f"{BENCHMARKS}/{rule}/{names}.tsv"


def shard_name(number: int) -> str:
    """A shard's number as written in paths.

    >>> shard_name(7)
    '00007'
    """
    return f"{number:05d}"
