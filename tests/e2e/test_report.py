# SPDX-License-Identifier: Apache-2.0
"""The report as its reader sees it: a page that needs its own folder only, and every claim with its verdict."""
import base64
import re
import shutil
import subprocess
from html.parser import HTMLParser

import pytest

from harness.daemon import PROGRAMS

VOID = {"meta", "br", "img"}
INLINE = "data:image/png;base64,"
WORDS = ("holds", "does not hold", "no effect", "cannot be judged")
VERDICT = r"holds|does not hold|no effect larger than [\d.e+]+(?: %)?|cannot be judged"
PRESETS = ("mechanisms", "corrupt-fig1a", "ppar-fig4", "ppar-fig10")

# Every text of the file that can appear in a page, a drawing or a file name is an injection attempt there.
HOSTILE = """
campaign: "../x<script>alert(1)</script>'; !touch pwned"
items: {list: [{name: a, mean: 0.9}, {name: b, mean: 0.6}]}
policy: {name: klucb-cf}
privacy: {mechanism: none, privatizer: {name: randomized-response, epsilon: 1}}
limits: {tokens: 100}
experiment:
  about: "about <img src=x onerror=alert(1)> & \\"quotes\\" ' `touch pwned`"
  paper: "</p></body><iframe src='http://example.org'></iframe>"
  source: "</table><script>alert(5)</script> | ' source"
  replicates: 4
  x: {pulls: [50, 100], label: "t <b> ' | x"}
  series:
    - {name: "one </text><script>alert(2)</script>"}
    - {name: "two ' | \\" & ", policy: ts-cf}
  metrics: [regret]
  figure: {title: "</svg><script>alert(3)</script>'; !touch pwned", y: "y '\\" <i>"}
  claims:
    - {says: "<script>alert(4)</script> | & says", series: "two ' | \\" & ", least: -1e6,
       quote: "</q><script>alert(6)</script> | quote", where: "<iframe> | where"}
    - {says: it loses, series: "two ' | \\" & ", most: -1e6}
    - {says: less than nothing, by: us, series: "two ' | \\" & ", most: -1e6}
    - {says: they differ, by: us, series: "two ' | \\" & ", above: "one </text><script>alert(2)</script>",
       smallest: 1000000}
"""


def report(*args, cwd, timeout=300):
    return subprocess.run([PROGRAMS["lab"], "report", *map(str, args)], cwd=cwd, timeout=timeout, capture_output=True,
                          text=True, stdin=subprocess.DEVNULL)


class Page(HTMLParser):
    """The page is well-formed, its names are unique and its links lead to them or to drawings beside it; nothing from
    outside, no script."""

    def __init__(self, path):
        super().__init__()
        self.stack, self.ids, self.wanted, self.rows, self.tags = [], set(), set(), [], set()
        self.folder, self.text, self.shown, self.thumbnails, self.files = path.parent, "", "", [], set()
        self.feed(path.read_text())
        assert self.stack == [] and self.wanted <= self.ids

    def handle_starttag(self, tag, attrs):
        assert tag not in ("script", "iframe", "link", "object", "embed", "base"), tag
        self.tags.add(tag)
        if tag not in VOID:
            self.stack.append(tag)
        if tag == "tr":
            self.rows.append("")
        for name, value in attrs:
            assert not name.startswith("on"), (tag, name)
            if name in ("src", "href", "xlink:href", "data", "action"):
                self.take_link(tag, value)
            if name == "id":
                assert value not in self.ids, value
                self.ids.add(value)
            assert "url(" not in (value or "") or name in ("clip-path", "fill", "filter"), (name, value)

    def take_link(self, tag, value):
        if value.startswith("#"):
            self.wanted.add(value[1:])
        elif tag == "img" and value.startswith(INLINE):
            self.thumbnails.append(base64.b64decode(value[len(INLINE):], validate=True))
        else:
            assert re.fullmatch(r"[\w.-]+\.svg", value) and (self.folder / value).is_file(), value
            self.files.add(value)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.stack.pop()

    def handle_endtag(self, tag):
        assert self.stack.pop() == tag, (tag, self.getpos())

    def handle_data(self, data):
        assert "style" not in self.stack or "@import" not in data and "url(" not in data
        self.text += data
        folds = self.stack.count("details")
        self.shown += data if folds == 0 or (folds == 1 and "summary" in self.stack) else ""
        if "tr" in self.stack:
            self.rows[-1] += data


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    (folder / "hostile.yaml").write_text(HOSTILE)
    done = report(*PRESETS, "./hostile.yaml", "--replicates", 6, "--out", "out", "--text", "verdicts.md", cwd=folder)
    assert done.returncode == 0, done.stderr
    return folder, done, Page(folder / "out" / "report.html")


def test_the_page_needs_its_folder_only_and_obeys_no_file(made, tmp_path):
    folder, _, page = made
    assert page.tags >= {"section", "figure", "svg", "details", "table", "img"}
    moved = tmp_path / "moved"
    shutil.copytree(folder / "out", moved)
    assert Page(moved / "report.html").files == page.files  # that all exist is checked on the way
    assert not list(folder.rglob("pwned"))
    assert "<script>alert(4)</script> | & says" in page.text
    assert "</p></body><iframe src='http://example.org'></iframe>" in page.text
    assert "one </text><script>alert(2)</script>" in page.text
    for text in ("</table><script>alert(5)</script> | ' source", "</q><script>alert(6)</script> | quote",
                 "<iframe> | where"):
        assert text in page.text
    # the experiment's name cannot lead out of the folder
    assert {path.parent for path in folder.rglob("*.db")} == {folder / "out"}


def test_the_page_opens_with_a_summary_and_folds_the_rest(made):
    folder, _, page = made
    run = [name for name in PRESETS if name != "ppar-fig10"] + ["hostile"]
    # a thumbnail and two drawings for each experiment that ran
    assert len(page.thumbnails) == len(run) and len(page.files) == 2 * len(run)
    for png in page.thumbnails:
        assert png.startswith(b"\x89PNG\r\n\x1a\n") and int.from_bytes(png[16:20], "big") == 300
    assert (folder / "out" / "report.html").stat().st_size < 55_000 * len(run)  # 55 presets: 3 MB
    # the papers' experiments come first, and what is shown are lines, not tables of numbers
    papers, ours = page.shown.index("What the papers claim, by experiment"), page.shown.index("Experiments of our own")
    assert papers < page.shown.index("corrupt-fig1a", papers) < ours < page.shown.index("mechanisms", ours)
    assert "Regret of corrupt bandits over time" in page.shown and "the papers' claims: " in page.shown
    assert "standard errors" not in page.shown and "standard errors" in page.text


def test_figures_say_what_bars_are_and_that_a_bound_is_asymptotic(made):
    folder, _, page = made
    said = "one standard error of the mean to each side; 6 replicates; lines without them are computed"
    drawing = (folder / "out" / "corrupt-fig1a.svg").read_text()
    for text in (page.text, drawing):
        assert f"bands: {said}" in text and "lower bound (asymptotic)" in text
    assert "lower bound (asymptotic)" not in (folder / "out" / "corrupt-fig1a.dat").read_text()  # data keep their names
    verdicts = re.sub(r"`[-+=?]*`", "", (folder / "verdicts.md").read_text())  # without the bars of the summary
    assert re.search(r"\d ± \d", page.text) and re.search(r"\d ± \d", verdicts) and "+-" not in verdicts


def test_every_experiment_and_claim_appears_with_a_verdict(made):
    folder, done, page = made
    files = subprocess.run([PROGRAMS["lab"], "list"], capture_output=True, text=True, check=True).stdout
    assert all(re.search(rf"^{name} ", files, re.M) for name in PRESETS)
    texts = [page.text, re.sub(r"\\(.)", r"\1", (folder / "verdicts.md").read_text())]
    for name in PRESETS:
        assert all(name in text for text in texts)
    said = ["KLUCB-CF is the best of the three", "as printed: the least accurate class has at least .98 at every alpha",
            "at a power of two kary has more noise than hybrid",
            "as printed: the least accurate class has at least .94 for alpha of at least .1"]
    assert all(claim in text for claim in said for text in texts)
    # the last cell of a claim's row in the page, a bold cell in the text
    rows = [match[1] for row in page.rows if (match := re.search(f"[✓✗=?] ({VERDICT})$", row.strip()))]
    marks = re.findall(rf"\*\*({VERDICT})\*\*", texts[1])
    assert sorted(rows) == sorted(marks) and len(rows) > 20


def numbers(text):
    return [int(number) for number in re.findall(r"(\d+) (?:hold|do|has|have|is|are)", text)]


def claims_of(text, head):
    """The verdicts in all tables with this head, counted in the order of the summary's columns."""
    tables = re.findall(rf"^{head}\n\|[- |]+\n((?:\|.*\n?)+)", text, re.M)
    marks = [re.search(rf"\*\*({VERDICT})\*\*", row)[1] for table in tables for row in table.splitlines()]
    return [sum(mark.startswith(word) for mark in marks) for word in WORDS]


def test_papers_and_our_own_claims_are_counted_apart(made):
    folder, done, page = made
    text = (folder / "verdicts.md").read_text()
    papers = claims_of(text, r"\| claim \| the paper says \| verdict \| why \|")
    ours = claims_of(text, r"\| our own claim \| verdict \| why \|")
    assert papers[0] >= 1 and papers[1] >= 1 and ours[1] >= 1 and sum(ours) >= 7
    told = re.search("report.html: of the papers' claims (.*); of our own (.*)\n$", done.stdout)
    assert (numbers(told[1]), numbers(told[2])) == (papers, ours)
    for said in (f"Of the papers' claims {told[1]}.", f"f our own {told[2]}."):
        assert said in text and said in page.text
    # a line of the summary is one paper: name, counts, picture, what does not hold
    lines = [re.split(r"(?<!\\) ?\| ?", line.strip("| \n")) for line in text.split("\n## ")[0].splitlines()
             if re.search(r" \| \d+ \| ", line)]
    for line in lines:
        assert [line[5].count(sign) for sign in "+-=?"] == [int(count) for count in line[1:5]]
    assert [sum(int(line[i]) for line in lines) for i in range(1, 5)] == [a + b for a, b in zip(papers, ours)]
    mine = [line for line in lines if "alert(5" in line[0]]
    assert len(mine) == 2 and mine[0][1:3] == ["1", "1"] and mine[0][6].startswith("it loses (")
    assert mine[1][2] == "1" and mine[1][6].startswith("less than nothing (")


OPEN_BANDIT = "item_id and propensity_score"
TAXI = "taxi_id, trip_miles and pickup_community_area"


def write_bandit(path, columns="item_id,propensity_score", before=""):
    # steps of .11: no mean is a multiple of alpha below the best of a class
    lines = [f"{before}item-{i},{i * .11:.2f}" for i in range(1, 9) for _ in range(40)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(columns + "\n" + "\n".join(lines) + "\n")


def test_what_has_no_data_is_said_to_be_not_run(made):
    _, done, page = made
    said = f"missing data; expected --data-folder with a file that has the columns {OPEN_BANDIT}"
    assert done.stderr == f"ppar-fig10: not run: {said}\n"
    assert f"Not run: {said}" in page.text


def test_the_help_names_the_columns_of_all_data(tmp_path):
    told = " ".join(report("--help", cwd=tmp_path).stdout.split())
    done = [report(*part, "--replicates", 1, cwd=tmp_path) for part in
            (["ppar-fig9"], ["ppar-fig10"], ["recruit-fig4"], ["recruit-fig5"], ["beyond-recruit-taxi"])]
    expected = [re.search(r"columns (.*)$", one.stderr.strip())[1] for one in done]
    assert set(expected) == {OPEN_BANDIT, TAXI} and all(text in told for text in expected)


def test_data_are_found_by_their_columns(tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    # what is no such table, or lacks a column, is passed over
    (data / "notes.txt").write_text("item_id\n")
    (data / "broken.csv").write_bytes(b"item_id,propensity_score,\0\n")
    write_bandit(data / ".hidden" / "a.csv")
    write_bandit(data / "one" / "deeper" / "a.csv")
    done = report("ppar-fig10", "--replicates", 2, "--data-folder", "data", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stderr == f"ppar-fig10: not run: missing data; no file of --data-folder has the columns {OPEN_BANDIT}\n"
    # any name, other columns too, in any order, in a folder within
    write_bandit(data / "one" / "men.txt", "extra,item_id,propensity_score", "x,")
    done = report("ppar-fig10", "--replicates", 2, "--data-folder", "data", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    text = Page(tmp_path / "crowdveil-report" / "report.html").text
    assert "Not run" not in text
    assert "crowdveil-lab report --seed 1 --replicates 2 --data-folder DIR ppar-fig10" in text


def test_two_files_that_fit_are_refused_before_anything_runs(tmp_path):
    for name in ("b.csv", "sub/a.csv"):
        write_bandit(tmp_path / "data" / name)
    done = report("corrupt-fig1a", "ppar-fig10", "--replicates", 2, "--data-folder", "data", cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == "" and not (tmp_path / "crowdveil-report").exists()
    assert done.stderr == ("crowdveil-lab report: data: b.csv and sub/a.csv both have the columns "
                           f"{OPEN_BANDIT}; expected one such file\n")
    done = report("ppar-fig10", "--data-folder", "none", cwd=tmp_path)
    assert done.returncode == 1 and done.stderr == "crowdveil-lab report: none: No such file or directory\n"


def test_an_own_experiment_keeps_its_file_without_the_option(tmp_path):
    write_bandit(tmp_path / "mine.csv", "name,stars")
    (tmp_path / "mine.yaml").write_text("""
campaign: mine
items: {source: csv, path: mine.csv, item: name, score: stars, scale: [0, 1], replacement: true}
policy: {name: ppar, alpha: 0.3}
privacy: {mechanism: hybrid, epsilon: 10}
limits: {tokens: 100000}
experiment: {metrics: [pulls]}
""")
    done = report("./mine.yaml", "--replicates", 1, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "data").mkdir()
    done = report("./mine.yaml", "--replicates", 1, "--data-folder", "data", "--out", "other", cwd=tmp_path)
    assert "not run: missing data; no file of --data-folder has the columns name and stars" in done.stderr


def without_times(path):
    return re.sub(r"It took .*? s this time", "", path.read_text())


def test_results_that_are_there_are_taken_and_give_the_same_report(made):
    folder, _, _ = made
    before, verdicts = without_times(folder / "out" / "report.html"), (folder / "verdicts.md").read_text()
    done = report(*PRESETS, "./hostile.yaml", "--replicates", 6, "--out", "out", "--text", "verdicts.md", "--jobs", 3,
                  cwd=folder)
    assert done.returncode == 0, done.stderr
    assert without_times(folder / "out" / "report.html") == before
    assert (folder / "verdicts.md").read_text() == verdicts
    fresh = report("corrupt-fig1a", "--replicates", 6, "--out", "fresh", "--text", "fresh.md", "--jobs", 1, cwd=folder)
    assert fresh.returncode == 0
    section = re.compile(r"\n## corrupt-fig1a\n.*?(?=\n## |\Z)", re.S)
    assert section.search((folder / "fresh.md").read_text()).group() == section.search(verdicts).group()


def test_results_of_another_seed_are_refused(made):
    folder, _, _ = made
    done = report("corrupt-fig1a", "--replicates", 6, "--seed", 2, "--out", "out", cwd=folder)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and "seed" in done.stderr


@pytest.mark.parametrize("args, message", [
    (["mechanism"], 'unknown experiment "mechanism"; did you mean "mechanisms"?'),
    (["no-such.yaml"], "no-such.yaml: cannot be opened: No such file or directory"),
    (["mechanisms", "--replicates", "much"], "expected a whole number"),
    (["mechanisms", "--replicates", "2", "--out", "no/such"], "no/such: No such file or directory")])
def test_what_is_wrong_is_one_line(tmp_path, args, message):
    done = report(*args, cwd=tmp_path)
    assert done.returncode in (1, 2) and done.stdout == "" and done.stderr.count("\n") == 1
    assert done.stderr.startswith("crowdveil-lab report: ") and message in done.stderr
