# Look-ups of what a study takes from public data: networks, weights, fits, and what de-duplication kept.


def start_of(wildcards):
    """What a cell's training starts from: the name of a backbone, or a file of weights; or None."""
    return options_of(wildcards).get("start")


def start_files(wildcards):
    """The file of weights that a cell's training starts from."""
    start = start_of(wildcards)
    if start is None:
        return []
    if isinstance(start, str):
        return [f"results/backbones/{start}/model.safetensors"]
    return [str(study_locations.weights_file(STUDY, start))]


def publics_of(features, start=None):
    """The public sets that a feature set's network, or a start, was trained on, or its projection fitted on."""
    options = STUDY["features"][features]
    sources = {"backbone": "backbones", "fit": "fits"}
    named = [STUDY[kind][options[key]]["public"] for key, kind in sources.items() if key in options]
    named += [STUDY["backbones"][start]["public"]] if isinstance(start, str) else publics_trained_on(start)
    return list(dict.fromkeys([*named, *publics_trained_on(options)]))


def is_matched(public):
    """Whether de-duplication compares a public set with the private records."""
    return SOURCES[public]["matched"]


def kept_for(features, start=None):
    """What de-duplication kept, where private records that match a public set are dropped; else nothing."""
    if STUDY["dedup"]["drop"] != "private":
        return []
    return [f"results/dedup/{public}/kept.parquet" for public in publics_of(features, start) if is_matched(public)]


def not_accounted(wildcards):
    """What a cell does outside its ledger."""
    start, options = start_of(wildcards), options_of(wildcards)
    outside = outside_ledger(STUDY, wildcards.features, start, publics_of(wildcards.features, start))
    inherited = inherited_choices(STUDY["datasets"][wildcards.dataset], options)
    return [*outside, *inherited, *options.get("not_accounted", []), *[UNPAID] * scored_on_training()]


def kept_for_training(public):
    """What de-duplication kept of a public set; nothing where it drops private records: then what is trained or fitted
    on the set does not depend on them at all."""
    if STUDY["dedup"]["drop"] == "private" or not is_matched(public):
        return []
    return [f"results/dedup/{public}/kept.parquet"]


def matching_of(public):
    """How a public set was matched before a network is trained on it, for the network's card; None: it was not."""
    if not is_matched(public):
        return None
    return {"drop": "private"} if STUDY["dedup"]["drop"] == "private" else STUDY["dedup"]


def pretraining_devices(wildcards):
    """How many processes share a pre-training."""
    return STUDY["backbones"][wildcards.backbone].get("devices", 1)


def pretraining_threads(wildcards):
    """One each, and one for each process that makes pictures."""
    return pretraining_devices(wildcards) * (1 + STUDY["backbones"][wildcards.backbone].get("workers", 0))


def pretraining_memory(wildcards, input):
    """mem_mb of a pre-training: each process holds the images, up to a limit, and what they become."""
    shards = [path for path in input.public if path.endswith(".parquet")]
    held = min(sum(map(os.path.getsize, shards)) / 1e6 if all(map(os.path.exists, shards)) else 0, 2048)
    architecture = STUDY["backbones"][wildcards.backbone]["architecture"]
    least = 1150 if architecture == "small_cnn" else 2000 if architecture.startswith("wrn") else 6000
    devices = pretraining_devices(wildcards) * gpu()
    return int(pretraining_threads(wildcards) * (least + 4 * held) + devices * GPU_MB)


def backbone_folder(options):
    """Where the backbone of a feature set or fit lies; None for an extractor without one."""
    return f"results/backbones/{options['backbone']}" if "backbone" in options else None


def backbone_files(options):
    """The files of that backbone."""
    folder = backbone_folder(options)
    return [f"{folder}/{name}" for name in ("model.safetensors", "card.json")] if folder else []


def fit_folder(options):
    """Where the fit of a feature set lies; None where it has none."""
    return f"results/fits/{options['fit']}" if "fit" in options else None


def fit_files(options):
    """Its files."""
    folder = fit_folder(options)
    return [f"{folder}/{name}" for name in ("projection.safetensors", "card.json")] if folder else []


def never_compared(wildcards):
    """What made a cell's features, or its start, and was never compared with the private records."""
    start, options = start_of(wildcards), STUDY["features"][wildcards.features]
    found = [public for public in publics_of(wildcards.features, start) if not is_matched(public)]
    if isinstance(start, dict) and start["trained_on"] == UNMATCHED:
        found.append(start["weights"])
    if options.get("weights", "random") != "random" and options["trained_on"] == UNMATCHED:
        found.append(options["model"])
    return found


def publics_where(holds, wildcards):
    """The public sets that made a cell's features, or its start, of which something holds."""
    return [public for public in publics_of(wildcards.features, start_of(wildcards)) if holds(public, STUDY)]


def weights_files(options):
    """The file of a public network that the user brings: another one makes the features anew."""
    path = study_locations.weights_file(STUDY, options)
    return [str(path)] if path else []


def rule_options():
    """The thresholds of de-duplication that the config sets."""
    return {key: STUDY["dedup"][key] for key in ("threshold", "possible", "margin") if key in STUDY["dedup"]}


def embedding_options():
    """The feature set that finds candidates for de-duplication, or None for the default."""
    name = STUDY["dedup"].get("embedding")
    return STUDY["features"][name] if name else None


def embedding_files(wildcards):
    """The files of its network, where it has one."""
    options = embedding_options() or {}
    return [*backbone_files(options), *weights_files(options)]


def embedding_module():
    """Its extractor's module."""
    return f"dpstudy.features.{(embedding_options() or {'extractor': 'scatternet'})['extractor']}"


def descriptions(source, splits=None):
    """What de-duplication knows of the images of each split of a data set."""
    return [
        f"results/dedup/images/{source}/{split}/part-{shard:05d}.safetensors"
        for split in splits or splits_of(source)
        for shard in range(SOURCES[source]["shards"])
    ]


def shards_of(source):
    """(split, shard) of every shard of a data set, in order."""
    return [(split, shard) for split in splits_of(source) for shard in range(SOURCES[source]["shards"])]


def described(source, split, shard):
    """A shard's folder of images, its number, and the file that describes it."""
    path = f"results/dedup/images/{source}/{split}/part-{shard:05d}.safetensors"
    return [f"results/data/{source}/{split}", shard, path]


def private_images():
    """Every private data set that brings images."""
    return [dataset for dataset in STUDY["datasets"] if with_images(dataset)]


def drawn(public):
    """Whether a program drew a public set without seeing an image, so that it has no copies of any."""
    return SOURCES[public]["reader"] in DRAWN and public not in PLANTED
