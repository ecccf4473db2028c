"""`python -m stepcraft_papers.training`: make samples, train on them, serve and compare models."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer
from typer import Argument, Option

from stepcraft.errors import BadInput
from stepcraft.sources import open_source
from stepcraft_papers.console import print_table, run, say
from stepcraft_papers.published import RPG_ABLATIONS
from stepcraft_papers.training.build import Build, Report
from stepcraft_papers.training.records import READERS
from stepcraft_papers.training.samples import TrainingSample, read_samples, split

app = typer.Typer(help=__doc__, no_args_is_help=True, add_completion=False, rich_markup_mode=None)

Into = Annotated[Path, Option(help="The folder that gets what is made; a stopped one goes on.")]
Samples = Annotated[Path, Argument(metavar="SAMPLES", help="A file that `build` has made.")]
Folder = Annotated[Path, Argument(metavar="DIR", help="A folder that `train` has made.")]
Base = Annotated[str, Option(help="The folder or hub's name of a causal model of transformers.")]
Train = Annotated[int, Option(min=1, help="The most samples that are learned.")]
Validation = Annotated[int, Option(min=0, help="Samples that losses are measured on instead.")]


@app.command()
def build(
    data: Annotated[Path, Argument(metavar="FILE", help="Records, or questions.")],
    model: Annotated[str, Option(help='The strong model: "openai:gpt-5", "ollama:…".')],
    records: Annotated[str, Option(help=f"One of {', '.join(READERS)}.")] = "questions",
    sources: Annotated[
        list[str] | None, Option("--from", metavar="SPEC", help="What questions are answered from.")
    ] = None,
    into: Into = Path("samples"),
    limit: Annotated[int | None, Option(min=1, help="The first N records alone.")] = None,
    max_calls: Annotated[int | None, Option(min=1, help="The most calls of the model.")] = None,
    concurrency: Annotated[int, Option(min=1, help="Records at the same time.")] = 4,
) -> None:
    """Make training samples from records, or from RPG's answers to questions (RPG §3.3)."""
    if records not in READERS:
        raise BadInput(f"--records is one of {', '.join(READERS)}, not {records!r}")
    if records == "questions" and not sources:
        raise BadInput("questions are answered from sources; name them with --from")
    opened = [open_source(spec) for spec in sources or ()]
    items = islice(READERS[records](data), limit)
    report = Build(into, model, opened, max_calls, concurrency, _note).run(items)
    rows = [
        ("samples made", report.kept),
        ("segments in them", report.segments),
        ("done before", report.present),
        ("model calls", report.calls),
        *((f"left out: {reason}", count) for reason, count in report.left_out.most_common()),
        *((f"failed: {id_}: {reason}", 1) for id_, reason in report.failed.items()),
    ]
    print_table("", "number", rows=[(name, f"{count:,}") for name, count in rows])
    if report.stopped:
        say(f"stopped at --max-calls {max_calls}; the same command with more goes on")


@app.command()
def schema() -> None:
    """Print the JSON schema of a training sample."""
    say(json.dumps(TrainingSample.model_json_schema(), indent=1), err=False)


@app.command()
def show(
    samples: Samples, number: Annotated[int, Option(min=1, help="Of the sample, from 1.")] = 1
) -> None:
    """Print what a model learns from a sample: each prompt and its reply."""
    with _train_extra():
        from stepcraft_papers.training.examples import examples

    every = read_samples(samples)
    if number > len(every):
        raise BadInput(f"{samples} has {len(every)} samples, and none with the number {number}")
    for each in examples(every[number - 1]):
        prompt = "\n\n".join(message.text for message in each.messages)
        say(f"== {each.task}\n{prompt}\n-- is answered with\n{each.reply}\n", err=False)


@app.command()
def train(
    samples: Samples,
    base: Base,
    into: Into = Path("tuned"),
    method: Annotated[str, Option(help="multitask-prompt, or lora.")] = "multitask-prompt",
    take: Train = 50_000,
    validation: Validation = 0,
    epochs: Annotated[float, Option(help="Times that every sample is seen.")] = 3,
    learning_rate: Annotated[float, Option(help="It falls linearly from here.")] = 1e-5,
    batch: Annotated[int, Option(min=1, help="Examples of a step.")] = 2,
    accumulated: Annotated[int, Option(min=1, help="Steps before weights change.")] = 1,
    virtual_tokens: Annotated[int, Option(min=1, help="Tokens of the prompts.")] = 50,
    ranks: Annotated[int, Option(min=1, help="Of the prompts, or of the LoRAs.")] = 64,
    max_tokens: Annotated[int, Option(min=1, help="Longer examples are left out.")] = 1024,
    also: Annotated[
        list[str] | None, Option(help="A module that is trained as a whole, such as lm_head.")
    ] = None,
    plan_loss: Annotated[bool, Option(help="Learn plans, too.")] = True,
    shared_prompt: Annotated[bool, Option("--shared-prompt", help="One for both tasks.")] = False,
    instructions: Annotated[
        bool | None, Option(help="Read the instructions of the nodes; LoRAs do by default.")
    ] = None,
    bf16: Annotated[bool, Option("--bf16", help="Half precision.")] = False,
    save_steps: Annotated[int, Option(min=1, help="Steps between checkpoints.")] = 500,
    seed: Annotated[int, Option(help="Of the order of the samples.")] = 0,
) -> None:
    """Train a small model to plan and to answer (RPG §3.4), with the paper's defaults."""
    with _train_extra():
        from stepcraft_papers.training.train import Recipe
        from stepcraft_papers.training.train import train as fit

    if method not in {"multitask-prompt", "lora"}:
        raise BadInput(f"--method is multitask-prompt or lora, not {method!r}")
    recipe = Recipe(
        method="lora" if method == "lora" else "multitask-prompt",
        plan_loss=plan_loss,
        shared_prompt=shared_prompt,
        instructions=method == "lora" if instructions is None else instructions,
        virtual_tokens=virtual_tokens,
        ranks=ranks,
        also_trained=tuple(also or ()),
        epochs=epochs,
        learning_rate=learning_rate,
        batch=batch,
        accumulated=accumulated,
        max_tokens=max_tokens,
        bf16=bf16,
        save_steps=save_steps,
        seed=seed,
    )
    learned, held_back = split(read_samples(samples), take, validation)
    record = fit(base, learned, held_back, into, recipe)
    losses = record["losses"].items()
    rows = [(task, f"{loss['before']:.3f}", f"{loss['after']:.3f}") for task, loss in losses]
    print_table("loss of a token", "before", "after", rows=rows)
    say(
        f"{record['examples']:,} examples, {record['too_long']:,} too long, "
        f"{record['tokens_per_second']:,.0f} tokens a second; {into}"
    )


@app.command()
def serve(folder: Folder) -> None:
    """Print the command that serves the LoRAs in a folder with vLLM."""
    with _train_extra():
        from stepcraft_papers.training.model import vllm_command

    say(vllm_command(folder), err=False)
    say('then: node_models={"plan": "openai:plan", "answer": "openai:answer"} for rpg_paper')


@app.command()
def ablations(
    samples: Samples,
    base: Base,
    data: Annotated[Path, Option(help="The benchmark's file.")],
    benchmark: Annotated[str, Option(help="asqa, 2wikimultihopqa or pubhealth.")] = "asqa",
    into: Into = Path("training-ablations"),
    sizes: Annotated[list[int] | None, Option("--size", help="Fewer samples; repeatable.")] = None,
    take: Train = 50_000,
    epochs: Annotated[float, Option(help="Times that every sample is seen.")] = 3,
    learning_rate: Annotated[float, Option(help="It falls linearly from here.")] = 1e-5,
    batch: Annotated[int, Option(min=1, help="Examples of a step.")] = 2,
    bf16: Annotated[bool, Option("--bf16", help="Half precision.")] = False,
    limit: Annotated[int | None, Option(min=1, help="The first N questions alone.")] = None,
) -> None:
    """Train without the plan loss, with one prompt, and on less data; compare (RPG §4, table 3)."""
    with _train_extra():
        from stepcraft_papers.training.ablations import compare
        from stepcraft_papers.training.train import Recipe

    if benchmark not in RPG_ABLATIONS:
        raise BadInput(f"--benchmark is one of {', '.join(RPG_ABLATIONS)}, not {benchmark!r}")
    recipe = Recipe(epochs=epochs, learning_rate=learning_rate, batch=batch, bf16=bf16)
    learned, _ = split(read_samples(samples), take, 0)
    rows = compare(
        base, learned, recipe, into, benchmark=benchmark, data=data, limit=limit, sizes=sizes or ()
    )
    print_table("trained", "score", "ours (95 %)", "paper", rows=rows)


@contextmanager
def _train_extra() -> Generator[None]:
    """Raise an error that names the extra to install if one of its packages is missing.

    Raises:
        BadInput: A package of the extra is not installed.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise BadInput(
            f'{error.name} is not installed: pip install "stepcraft-papers[train]"'
        ) from error


def _note(report: Report) -> None:
    say(f"{report.kept} made, {report.calls} calls, {len(report.failed)} failed", end="\r")


def main() -> None:
    """Run the command line; report a failure in one line."""
    run(app, "stepcraft_papers.training")


if __name__ == "__main__":
    main()
