"""What is found by words in each language, in every index: a file, a store, Postgres, Weaviate, a corpus of files,
and one in each server."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from langgraph.store.memory import InMemoryStore

from stepcraft import Procedure, open_memory
from stepcraft.memory.protocol import ProcedureMemory
from stepcraft.sources import build_corpus, open_corpus, open_source
from tests.servers.postgres_server import own_database
from tests.servers.weaviate_server import collection_of, own_collection

INDEXES = [
    "file",
    "store",
    "postgres",
    pytest.param("weaviate", marks=pytest.mark.xdist_group("weaviate_url")),
    "corpus",
    "corpus in postgres",
    pytest.param("corpus in weaviate", marks=pytest.mark.xdist_group("weaviate_url")),
]

TEXTS = {
    "Thai": ("วิธีชงกาแฟด้วยเครื่องชงกาแฟ: เติมน้ำแล้วกดปุ่ม", "วิธีซักผ้าด้วยเครื่องซักผ้า: ใส่ผงซักฟอก"),
    "Lao": ("ວິທີຕົ້ມເຂົ້າໜຽວ: ແຊ່ເຂົ້າໃນນ້ຳ", "ວິທີລ້າງລົດ: ໃຊ້ຜ້າສະອາດ"),
    "Khmer": ("របៀបដាំបាយ៖ លាងអង្ករជាមុន", "របៀបបោកខោអាវ៖ ដាក់សាប៊ូ"),
    "Burmese": ("ထမင်းချက်နည်း၊ ဆန်ကိုဆေးပါ", "အဝတ်လျှော်နည်း၊ ဆပ်ပြာထည့်ပါ"),
    "Hindi": ("पत्र लिखना: क़लम और काग़ज़ लें", "चाय बनाना: पानी उबालें और चीनी डालें"),
    "Bengali": ("মাছের ঝোল রান্না: আগে মাছ ভাজুন", "চা বানানো: জল গরম করুন"),
    "Tamil": ("சோறு சமைப்பது: அரிசியைக் கழுவவும்", "துணி துவைப்பது: சோப்பு போடவும்"),
    "Arabic": ("إِعْدَادُ القَهْوَةِ العَرَبِيَّةِ: يُغلى المـــاءُ أولاً", "غسل الملابس: ضع الصابون"),
    "Persian": ("چای‌ساز را روشن کنید و ۲۵ دقیقه صبر کنید", "لباس‌ها را با صابون بشویید"),
    "Urdu": ("روٹی پکانا: آٹا گوندھیں اور تَوا گرم کریں", "کپڑے دھونا: صابن ڈالیں"),
    "Hebrew": ("אֲפִיַּת חַלָּה: לָשִׁים אֶת הַבָּצֵק", "כביסה בבית: שמים סבון"),
    "Russian": ("Как украсить ёлку: повесьте шары", "Как испечь пирог: замесите мой любимый те́ст"),
    "Ukrainian": ("Як зварити борщ із м'ясом: поріжте буряк", "Як попрати їхній одяг: додайте мило"),
    "Greek": ("Πώς να ψήσετε ψωμί: ζυμώστε το αλεύρι", "Πώς να πλύνετε ρούχα: βάλτε σαπούνι"),
    "Turkish": ("IŞIK nasıl açılır: İstanbul'daki DÜĞMEYE basın", "Çamaşır nasıl yıkanır: sabun koyun"),
    "Vietnamese": ("Nấu phở bò: ninh xương với nước", "Giặt quần áo: cho xà phòng, Đà Nẵng"),
    "French": ("Crème brûlée au caramel: fouettez les œufs", "Laver la vaisselle: de l'eau et du savon; gateau"),
    "Spanish": ("Preparar piñas en almíbar: corte la fruta", "Lavar la ropa: ponga jabón"),
    "Portuguese": ("Assar pão de queijo: misture o polvilho", "Lavar a louça: ponha sabão"),
    "German": ("Haftpflichtversicherung kündigen: ein Kündigungsschreiben vorbereiten", "Geschirrspülmaschine entkalken: das Mittel auf die Straße nicht schütten"),
    "Dutch": ("Zorgverzekering opzeggen: schrijf een brief", "Vaatwasmachine ontkalken: giet azijn erin"),
    "Swedish": ("Säga upp sjukförsäkringen: skriv ett brev", "Avkalka kaffebryggaren: häll i ättika"),
    "Czech": ("Příprava svíčkové: nakrájejte kořenovou zeleninu", "Praní prádla: přidejte mýdlo"),
    "Polish": ("Gotowanie żurku w Łodzi: pokrój kiełbasę", "Pranie ubrań: dodaj mydło"),
    "Chinese": ("西红柿炒鸡蛋：把鸡蛋打散", "清洗衣服：放入肥皂"),
    "Japanese": ("味噌汁の作り方：出汁を温める", "ﾊﾞﾅﾅｹｰｷを焼く：オーブンを使う"),
    "Korean": ("김치찌개를 끓이는 방법: 두부를 넣는다", "빨래하는 방법: 비누를 넣는다"),
    "English": ("Bake a rye bread: knead the dough and let it rise", "Wash the dishes: heat the water"),
}  # fmt: skip
"""Two texts a language."""

FOUND = [
    ("Thai", "ชงกาแฟ", 0), ("Thai", "กาแฟ", 0), ("Thai", "นํ้า", 0), ("Thai", "ผงซักฟอก", 1),
    ("Lao", "ເຂົ້າໜຽວ", 0), ("Lao", "ລ້າງລົດ", 1),
    ("Khmer", "អង្ករ", 0), ("Khmer", "ដាំបាយ", 0), ("Khmer", "សាប៊ូ", 1),
    ("Burmese", "ထမင်း", 0), ("Burmese", "ဆပ်ပြာ", 1),
    ("Hindi", "कागज", 0), ("Hindi", "क़लम", 0), ("Hindi", "चीनी", 1),
    ("Bengali", "ঝোল", 0), ("Bengali", "মাছের", 0), ("Bengali", "বানানো", 1),
    ("Tamil", "சோறு", 0), ("Tamil", "துணி", 1),
    ("Arabic", "اعداد القهوه", 0), ("Arabic", "الماء", 0), ("Arabic", "اولا", 0), ("Arabic", "الصَّابُون", 1),
    ("Persian", "چايساز", 0), ("Persian", "25 دقيقه", 0), ("Persian", "لباسها", 1),
    ("Urdu", "روٹي", 0), ("Urdu", "توا", 0), ("Urdu", "صابن", 1),
    ("Hebrew", "חלה", 0), ("Hebrew", "הבצק", 0), ("Hebrew", "סַבּוֹן", 1),
    ("Russian", "елку", 0), ("Russian", "ШАРЫ", 0), ("Russian", "тест", 1),
    ("Ukrainian", "м’ясом", 0), ("Ukrainian", "БУРЯК", 0), ("Ukrainian", "ЇХНІЙ", 1),
    ("Greek", "ΨΩΜΙ", 0), ("Greek", "αλευρι", 0), ("Greek", "ρουχα", 1),
    ("Turkish", "ışık", 0), ("Turkish", "isik", 0), ("Turkish", "istanbul", 0), ("Turkish", "ÇAMAŞIR", 1),
    ("Vietnamese", "pho bo", 0), ("Vietnamese", "nước", 0), ("Vietnamese", "da nang", 1),
    ("French", "brulee", 0), ("French", "CRÈME", 0), ("French", "oeufs", 0), ("French", "gâteau", 1), ("French", "eau", 1),
    ("Spanish", "pinas almibar", 0), ("Spanish", "JABON", 1),
    ("Portuguese", "pao", 0), ("Portuguese", "sabao", 1),
    ("German", "Versicherung", 0), ("German", "Haftpflicht", 0), ("German", "Schreiben", 0), ("German", "kundigen", 0),
    ("German", "Maschine", 1), ("German", "Geschirr", 1), ("German", "spülen Spülmaschine", 1), ("German", "STRASSE", 1),
    ("Dutch", "verzekering", 0), ("Dutch", "machine ontkalken", 1),
    ("Swedish", "försäkring", 0), ("Swedish", "kaffe", 1),
    ("Czech", "priprava", 0), ("Czech", "korenovou", 0), ("Czech", "pradla", 1),
    ("Polish", "zurku Lodzi", 0), ("Polish", "mydlo ubran", 1),
    ("Chinese", "鸡蛋", 0), ("Chinese", "红柿", 0), ("Chinese", "衣服", 1),
    ("Japanese", "味噌", 0), ("Japanese", "温める", 0), ("Japanese", "バナナ", 1), ("Japanese", "ｵｰﾌﾞﾝ", 1),
    ("Korean", "김치", 0), ("Korean", "두부", 0), ("Korean", "비누", 1),
    ("English", "breads", 0), ("English", "ＤＯＵＧＨ", 0), ("English", "dishes", 1),
]  # fmt: skip
"""The language, a query, and the text that comes first."""

UNSTEMMED = {("weaviate", "breads"), ("corpus in weaviate", "breads")}
"""Weaviate does not know the endings of English words."""

Search = Callable[[str], list[str]]


@pytest.fixture(scope="module", params=INDEXES)
def search(request, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Search]:
    """A search by words in an index with the texts of all languages."""
    texts = [text for each in TEXTS.values() for text in each]
    folder: Path = tmp_path_factory.mktemp("languages")
    with ExitStack() as stack:
        if request.param.startswith("corpus"):
            for number, text in enumerate(texts):
                (folder / f"{number}.txt").write_text(text, encoding="utf-8")
            corpus = stack.enter_context(closing(_corpus(request, folder, stack)))
            yield lambda query: [found.page_content for found in corpus.invoke(query)]
            return
        memory = stack.enter_context(_memory(request, folder, stack))
        outputs = (text.partition(":")[0] for text in texts)
        memory.add(
            Procedure("1", output, [text]) for output, text in zip(outputs, texts, strict=True)
        )
        yield lambda query: [found.procedure.steps[0] for found in memory.search(query, 3, alpha=0)]


def _corpus(request, folder: Path, stack: ExitStack):
    if request.param == "corpus":
        return open_corpus([folder], k=3, index=":memory:", embeddings="none")
    if request.param == "corpus in postgres":
        url = f"{_database(request, stack)}/docs"
    else:
        url = _collection(request, stack)
    build_corpus([folder], url, embeddings="none")
    return open_source(url, k=3, embeddings="none")


def _database(request, stack: ExitStack) -> str:
    return stack.enter_context(own_database(request.getfixturevalue("postgres_url")))


def _collection(request, stack: ExitStack) -> str:
    url = own_collection(request.getfixturevalue("weaviate_url"))
    client = request.getfixturevalue("weaviate_client")
    stack.callback(client.collections.delete, collection_of(url))
    return url


def _memory(request, folder: Path, stack: ExitStack) -> ProcedureMemory:
    match request.param:
        case "file":
            return open_memory(folder / "m.db", embeddings="none")
        case "store":
            return open_memory("store:languages", store=InMemoryStore())
        case "postgres":
            url = _database(request, stack)
            return open_memory(f"store+{url}/languages", embeddings="none")
        case _:
            return open_memory(_collection(request, stack), embeddings="none")


@pytest.mark.parametrize(("language", "query", "wanted"), FOUND)
def test_it_comes_first(request, search: Search, language: str, query: str, wanted: int):
    found = search(query)
    if (request.node.callspec.params["search"], query) in UNSTEMMED:
        assert found == []
    else:
        assert found[:1] == [TEXTS[language][wanted]]


def test_letters_that_differ_by_more_than_a_mark_stay_apart(search: Search):
    assert search("мои") == [], "й is not и"
    assert search("ขาว ขำ") == [], "a tone and a vowel are letters"
    assert search("蛋鸡") == [], "another order"
