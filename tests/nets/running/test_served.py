"""A run of a net as an entry of a served system."""

from pathlib import Path

from callboard import ActorSystem
from callboard.nets import box, parse
from callboard.remote import Server, connect, serve_entries

TIMEOUT = 60.0

HALVE = "net halve connect [{<n>} -> if <n % 2 == 0> then {<n=n/2>, <even>} else {<n>, <odd>}];"
name = box(lambda n: {"name": f"number {n}"}, "(<n>) -> (name)", name="name")


def test_clients_ask_a_net_and_tell_it(tmp_path: Path) -> None:
    with ActorSystem(workers=2) as system:
        run = system.run(parse(HALVE) >> name)
        server = Server(system, serve_entries({"numbers": run}), f"unix:{tmp_path}/s")
        with connect(f"unix:{tmp_path}/s") as connection:
            numbers = connection.ref("numbers")
            answers = [numbers.ask({"<n>": n}).result(TIMEOUT) for n in (4, 7)]
            assert answers == [
                [{"name": "number 2", "<even>": 0}],
                [{"name": "number 7", "<odd>": 0}],
            ]
            numbers.tell({"<n>": 8})
            numbers.tell_many([{"<n>": 9}, {"<n>": 10}])
            assert numbers.ask({"<n>": 1}).result(TIMEOUT)  # behind what was told
        server.stop()
        found = run.finish(TIMEOUT)
        assert [record["name"] for record in found] == ["number 4", "number 9", "number 5"]
