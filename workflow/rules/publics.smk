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
    return [str(study_config.weights_file(STUDY, start))]


def publics_of(features, start=None):
    """The public sets that a feature set's network, or a start, was trained on, or its projection fitted on."""
    options = STUDY["features"][features]
    sources = {"backbone": "backbones", "fit": "fits"}
    named = [STUDY[kind][options[key]]["public"] for key, kind in sources.items() if key in options]
    named += [STUDY["backbones"][start]["public"]] if isinstance(start, str) else []
    return list(dict.fromkeys(named))


def kept_for(features, start=None):
    """What de-duplication kept, where private records that match a public set are dropped; else nothing."""
    if STUDY["dedup"]["drop"] != "private":
        return []
    return [f"results/dedup/{public}/kept.parquet" for public in publics_of(features, start)]


def not_accounted(wildcards):
    """What a cell does outside its ledger."""
    options, start = STUDY["features"][wildcards.features], start_of(wildcards)
    sentences = []
    if isinstance(start, dict):
        sentences.append(
            f"The weights {start['weights']!r} that training starts from were trained elsewhere: what they were "
            "trained on was not compared with the private records."
        )
    if options.get("weights", "random") != "random":
        sentences.append(
            f"The network {options['model']!r} that made the features was trained elsewhere: what it was trained on was "
            "not compared with the private records."
        )
    if options["extractor"] == "precomputed":
        sentences.append("The features were brought: what they were made with is not known to this ledger.")
    if options["scaling"] == "cifar" or (options.get("model"), options["scaling"]) == ("resnext29-cifar", "model"):
        sentences.append(
            "Inputs are scaled by the printed channel means and deviations of CIFAR-10's training images, which depend on "
            "the private records where those are CIFAR-10's."
        )
    for public in publics_of(wildcards.features, start):
        if STUDY["dedup"]["drop"] == "public":
            sentences.append(
                f"What made the features, or training starts from, was trained on images of {public!r} that were chosen by comparing them with "
                "private records (de-duplication with drop: public)."
            )
        plant = STUDY["public"][public].get("plant")
        if plant and plant["split"] != "test":
            sentences.append(
                f"Copies of private records were planted in {public!r} for demonstration: what made the features, or what "
                "training starts from, saw them, and which records were dropped depends on them."
            )
    return sentences


def kept_for_training(public):
    """What de-duplication kept of a public set; nothing where it drops private records: then what is trained or fitted
    on the set does not depend on them at all."""
    return [] if STUDY["dedup"]["drop"] == "private" else [f"results/dedup/{public}/kept.parquet"]


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


def weights_files(options):
    """The file of a public network that the user brings: another one makes the features anew."""
    path = study_config.weights_file(STUDY, options)
    return [str(path)] if path else []
