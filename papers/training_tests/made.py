"""Made samples: who built what, in eight towns."""

from stepcraft_papers.training.samples import Segment, Support, TrainingSample

WORKS = ("bridge", "tower", "mill", "harbour", "well", "school", "market", "castle")
TOWNS = ("Arvel", "Brint", "Cosk", "Dunmar", "Elvo", "Farnik", "Gresh", "Holt")
BUILDERS = ("Haldruvin", "Quandt", "Oster", "Merrin", "Selby", "Tarn", "Ulm", "Voss")


def made_sample(number: int) -> TrainingSample:
    work, town = WORKS[number % 8], TOWNS[number // 8 % 8]
    builder, year = BUILDERS[(number * 5 + number // 8) % 8], 1800 + number * 3 % 8
    support = Support(title=f"The {work} of {town}", text=f"{builder} built it in {year}.")
    segment = Segment(
        plan=f"builder of the {work} of {town}", support=(support,), text=f"{builder} in {year}."
    )
    return TrainingSample(
        id=str(number),
        question=f"Who built the {work} of {town}?",
        origin="run",
        segments=(segment,),
    )


SAMPLES = [made_sample(number) for number in range(64)]
