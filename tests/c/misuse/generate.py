"""Writes the misuse matrix: every function of include/zklock.h with every wrong argument.

    python3 generate.py include/zklock.h matrix.c

What must come of a cell follows from the type of the argument and from what the header says of the function; the
status must be one that the function's @return lists. What has no rule is refused, so that a new function or a new
type is thought of here.
"""

import re
import sys

from header import NotUnderstood, read

LEAST, MOST = "INT64_MIN", "INT64_MAX"
# Timeouts that are none, and long ones.
LATE = ["INT64_MIN", "INT64_MIN + 1", "INT32_MIN", "-99", "-2"]
LONG = ["-1", "INT32_MAX", "UINT32_MAX", "INT64_MAX / 1000", "INT64_MAX - 1", "INT64_MAX"]
# A good one that a busy machine does not reach, and one that a wait in vain does.
SOON, IN_VAIN = ("NUMBER", "SOON_MS"), ("NUMBER", 100)
# The state of its handle in which a wait ends at once, and in which it is in vain, where these are not LIVE and BUSY.
WAITS = {
    "zklock_hold_wait_lost": ("CLOSED", "LIVE"),
    "zklock_hold_wait_wanted": ("WANTED", "LIVE"),
    "zklock_observer_next": ("LIVE", "TOLD"),
    "zklock_call_finish": ("SHOWN", "LIVE"),
    "zklock_client_connect_start": ("LIVE", None),
}
PLACES = ["HERE", "OTHER_THREAD", "LOSS_CALLBACK", "LOG_CALLBACK", "VISITOR"]

# The result of a function that returns no status: the value on success, and the value if it panics.
VALUES = {
    "zklock_status_name": ('"ZKLOCK_OK"', '"unknown"'),
    "zklock_last_error": ("NULL", '""'),
    "zklock_version": ("ZKLOCK_VERSION", "ZKLOCK_VERSION"),
    "zklock_abi": ("ZKLOCK_VERSION_MINOR", "0"),
    "zklock_last_conflict": ("-1", "-1"),
}

# The good handles of functions that do not work with any living one.
GOOD = {
    ("zklock_client_guard", "client"): "FRESH", ("zklock_client_close", "client"): "FRESH",
    ("zklock_client_free", "client"): "FRESH",
    ("zklock_call_hold", "call"): "GRANTED",
    ("zklock_hold_wait_lost", "hold"): "CLOSED",
    ("zklock_hold_wait_wanted", "hold"): "WANTED",
    ("zklock_evict", "lock"): "NAMED",
    ("zklock_client_close_start", "client"): "FRESH",
    ("zklock_client_next_event", "client"): "FOLLOWED",
    ("zklock_call_finish", "call"): "SHOWN",
    ("zklock_call_contenders", "call"): "SHOWN",
    ("zklock_call_member", "call"): "ENTERED",
    ("zklock_job_end", "hold"): "BEGUN",
    ("zklock_job_end_start", "hold"): "BEGUN",
    ("zklock_call_versions", "call"): "WRITTEN",
}

# The status with a closed client, where the general rule does not apply.
OF_CLOSED = {
    ("zklock_all_new", "client"): "ZKLOCK_INVALID_ARGUMENT",  # The locks are of another.
    ("zklock_any_new", "client"): "ZKLOCK_INVALID_ARGUMENT",
    ("zklock_member_leave", "member"): "ZKLOCK_LOST",
    ("zklock_job_end", "hold"): "ZKLOCK_INVALID_ARGUMENT",  # It is of no run.
    ("zklock_job_end_start", "hold"): "ZKLOCK_INVALID_ARGUMENT",
}

# Conditions that a handle can be in, other than with a closed client, with the status if a function lists it; otherwise it
# is ZKLOCK_OK.
PASTS = {
    "zklock_hold": [("RELEASED", "ZKLOCK_NOT_HELD")],
    "zklock_member": [("LEFT", "ZKLOCK_NOT_HELD")],
    "zklock_call": [("LIVE", "ZKLOCK_PENDING"), ("FETCHED", "ZKLOCK_NOT_HELD"), ("CANCELLED", "ZKLOCK_INTERRUPTED")],
}

# What is not the result of an acquire.
OF_OTHER_CALLS = {
    "zklock_call_member", "zklock_call_versions", "zklock_call_contenders",
}

# Numbers that are nearly a living handle.
NEARLY = {
    "OTHER_INDEX": "never made, like one that was",
    "OTHER_AGE": "of another age",
    "UNMARKED": "with the bits of one, but like an address of ours",
    "TWICE_MARKED": "with the bits of one, but like an address of the kernel's",
}

NOT_UTF8 = [
    (r"\377", "a byte that is none"),
    (r"/a\303", "a character that breaks off"),
    (r"/a\200b", "the middle of a character"),
    (r"/\300\257", "a character longer than it must be"),
    (r"/\355\240\200", "half a surrogate pair"),
    (r"/\364\220\200\200", "beyond the last character"),
]
TEXTS = {
    "node": ("NODE", ["", "locks", "/a//b", "/misuse/named", "/misuse/named/none", "/misuse/other/_c_x-lock-0000000001"]),
    "hosts": ("HOSTS", ["", ",", "localhost:", "localhost:99999", "localhost:port", "localhost:2181/a//b"]),
    "path": ("PATH", ["", "locks", "//", "/a//b", "/a/", "/a/./b", "/a/../b", r"/a\001b"]),
    "name": ("TEXT", ["", "x" * 129, r"a\001b"]),
    "option": ("TEXT", ["", "hosts", "Identity", "figure"]),
    "value": ("TEXT", ["x" * 1025]),
    "staged": ("STAGED", []),
    "target": ("TARGET", ["", "/", ".."]),
    "failure": ("TEXT", []),
    "command": ("TEXT", ["", "/", "/dev/null", "/there/is/none", "true"]),
}
# The good one, if it is not "somebody".
GOOD_TEXTS = {
    ("zklock_client_guard", "command"): "zklock",
    ("zklock_options_set", "option"): "identity",
}

WILD = [
    "a stack address", "a heap address", "a static address", "the address of a function", "1", "8", "4096",
    "all bits", "the highest bit",
]


# What may be wrong with the second of two.
SECONDS = {
    "locks": dict.fromkeys(["ONE_IS_NULL", "ONE_IS_ANOTHERS", "ONE_HAS_NO_QUEUE"], "ZKLOCK_INVALID_ARGUMENT")
    | dict.fromkeys(["ONE_IS_FREED", "ONE_IS_A_HOLD"], "ZKLOCK_INVALID_HANDLE"),
    "clients": {"NULL_POINTER": "ZKLOCK_INVALID_ARGUMENT", "CLOSED": "ZKLOCK_OK"}
    | dict.fromkeys(["FREED", "OTHER_AGE"], "ZKLOCK_INVALID_HANDLE"),
    # One twice, one that is not UTF-8, and NULL.
    "names": dict.fromkeys([1, 2, 3], "ZKLOCK_INVALID_ARGUMENT"),
}

# What kind of argument a parameter is: its type, in which the header's own names are `opaque`, `enum`, `struct` and `callback`, and its name.
RULES = [
    (r"opaque \*const \* (locks|clients)", "as its name"),
    (r"const char \*const \* names", "as its name"),
    (r"(out )?(void \* buffer|int32_t \* versions|struct \* buckets)", "room"),
    (r"out (int|double|int32_t|int64_t|uint64_t|size_t|struct|enum) \* \w+", "out"),
    (r"out (const char|const struct|opaque) \*\* \w+", "out"),
    (r"(const )?opaque \* \w+", "handle"),
    (r"const char \* \w+", "text"),
    (r"const struct \* \w+", "array"),
    (r"void \* context", "as its name"),
    (r"callback \w+", "callback"),
    (r"enum \w+|int32_t status", "enum"),
    (r"uint32_t (limit|members)", "number"),
    (r"int64_t every", "milliseconds"),
    (r"int64_t (timeout|milliseconds|needs)|size_t (count|size)", "as its name"),
]


class Matrix:
    """The cells, and the C data that they need."""

    def __init__(self, header):
        self.header = header
        self.cells = []
        self.texts = []
        self.arrays = []

    def kind(self, parameter):
        """The kind of argument for a parameter, as (what, detail). Every type needs a rule here."""
        base = re.search(r"\w+", parameter.type.removeprefix("const "))[0]
        sorts = {"opaque": self.header.opaque, "enum": self.header.enums, "struct": self.header.structs, "callback": self.header.callbacks}
        sort = next((sort for sort, names in sorts.items() if base in names), base)
        declared = f"{parameter.type.replace(base, sort)} {parameter.name}"
        if parameter.is_out:
            declared = f"out {declared}"
        what = next((what for rule, what in RULES if re.fullmatch(rule, declared)), None)
        if not what:
            raise NotUnderstood(f"no rule for {parameter.type} {parameter.name}")
        what = parameter.name if what == "as its name" else what
        details = {"out": kind_of(base) if sort == "opaque" else "KINDS", "text": parameter.name}
        return what, details.get(what, "zklock_status" if declared == "int32_t status" else base)

    def good(self, function, parameter):
        """An argument with which the call works."""
        what, detail = self.kind(parameter)
        if what == "handle":
            return GOOD.get((function.name, parameter.name), "LIVE"), kind_of(detail)
        if what == "text":
            source = TEXTS.get(detail)
            if not source:
                raise NotUnderstood(f"{function.name}: no rule for the text {detail}")
            return (source[0], 0) if source[0] != "TEXT" else self.text(GOOD_TEXTS.get((function.name, detail), "somebody"))
        if what in ("milliseconds", "number"):
            return "NUMBER", span(parameter)[0]
        if what == "array":
            return self.array(good_writes())
        if what == "count":
            return "NUMBER", 2
        if what == "enum":
            return "NUMBER", next(iter(self.header.enums[detail].values()))
        simple = {
            "out": ("OUTPUT", 0), "callback": ("CALLBACK", 0), "context": ("CONTEXT", 0), "timeout": SOON, "needs": ("NUMBER", 0),
            "locks": ("LOCKS", "GOOD_LOCKS"), "clients": ("CLIENTS", "LIVE"), "names": ("NAMES", 0),
            "room": ("ROOM", 0), "size": ("NUMBER", 64),
        }
        return simple[what]

    def text(self, text):
        """A C string literal."""
        return "TEXT", place(self.texts, text)

    def array(self, writes):
        """An array of writes; what follows it is zero."""
        return "WRITES", place(self.arrays, writes)

    def add(self, function, what, place, arguments, wanted, text="NULL"):
        """One cell. The documentation must list its outcome."""
        if wanted in ("ZKLOCK_TIMEOUT", "ZKLOCK_PENDING"):
            arguments = [IN_VAIN if given == SOON else given for given in arguments]
        if function.says_status and wanted not in function.listed:
            raise NotUnderstood(f"{function.name}, {what}: {wanted} is not among what it returns by its comment")
        self.cells.append((function, what, place, arguments, wanted, text))

    def function(self, function):
        """All cells of a function."""
        check(function, [self.kind(parameter)[0] for parameter in function.parameters])
        good = [self.good(function, parameter) for parameter in function.parameters]
        for place in PLACES:
            self.in_place(function, place, good)
        for at, parameter in enumerate(function.parameters):
            for what, argument, wanted, *text in self.variants(function, parameter):
                arguments = list(good)
                wanted, others = wanted if isinstance(wanted, tuple) else (wanted, {})
                if wanted not in ("ZKLOCK_OK", "NOTHING"):
                    # A call that fails changes nothing, so it needs no separate fixtures.
                    arguments = [("BYSTANDER", given[1]) if given[0] in STATES else given for given in good]
                for name, other in others.items():
                    arguments[[found.name for found in function.parameters].index(name)] = other
                arguments[at] = argument
                self.add(function, f"{parameter.name}: {what}", "HERE", arguments, wanted, *text)

    def in_place(self, function, place, good):
        """The call with good arguments, in one of the places where it can be made."""
        wanted, text = outcome(function)
        if place == "OTHER_THREAD":
            good = [("REENTRANT", "HOLD") if given == ("LIVE", "HOLD") else given for given in good]
            if "ZKLOCK_NOT_OWNER" in function.own:
                wanted = "ZKLOCK_NOT_OWNER"
        elif place in ("LOSS_CALLBACK", "LOG_CALLBACK") and "ZKLOCK_DEADLOCK" in function.own:
            if not re.search(r"ZKLOCK_DEADLOCK[^;.]* in a callback", function.said):
                raise NotUnderstood(f"{function.name}: ZKLOCK_DEADLOCK, but not in a callback?")
            wanted = "ZKLOCK_DEADLOCK"
            # A new one may have something to report already, and what has its result waits for nothing.
            waiting = {("LIVE", "OBSERVER"): ("TOLD", "OBSERVER"), ("SHOWN", "CALL"): ("LIVE", "CALL")}
            good = [waiting.get(given, given) for given in good]
        self.add(function, "good arguments", place, good, wanted, text)

    def variants(self, function, parameter):
        """The wrong or odd values of one argument: (what, argument, wanted)."""
        what, detail = self.kind(parameter)
        yield from getattr(self, "of_" + what)(function, parameter, detail)

    def of_handle(self, function, parameter, base):
        kind = kind_of(base)
        wanted = "NOTHING" if function.returns == "void" else "ZKLOCK_INVALID_HANDLE"
        yield "NULL", ("NULL_POINTER", 0), null(function, parameter)
        yield "freed", ("FREED", kind), wanted
        yield "freed, its place taken by another", ("REPLACED", kind), wanted
        for state, said in NEARLY.items():
            yield said, (state, kind), wanted
        for other in sorted(self.header.opaque - {base}):
            yield f"a {other}", ("BYSTANDER", kind_of(other)), wanted
        for number, name in enumerate(WILD):
            yield name, ("WILD", number), wanted
        if not base.endswith("options"):
            status = OF_CLOSED.get((function.name, parameter.name), closed(function))
            yield "of a closed client", ("CLOSED", kind), status
        for past, status in PASTS.get(base, []):
            if past == "FETCHED" and function.name in OF_OTHER_CALLS or OF_CLOSED.get((function.name, parameter.name)) == "ZKLOCK_INVALID_ARGUMENT":
                status = "ZKLOCK_INVALID_ARGUMENT"
            if GOOD.get((function.name, parameter.name)) != "CLOSED" or past != "LIVE":
                yield past.lower(), (past, kind), status if status in function.listed else outcome(function)[0]

    def of_out(self, function, parameter, _):
        yield "NULL", ("NULL_POINTER", 0), null(function, parameter)

    of_callback = of_out

    def of_context(self, function, _parameter, _):
        yield "NULL", ("NULL_POINTER", 0), outcome(function)[0]
        for number, name in enumerate(WILD):
            # The pointer is only passed on.
            yield name, ("WILD", number), outcome(function)[0]

    def of_text(self, function, parameter, name):
        yield "NULL", ("NULL_POINTER", 0), null(function, parameter)
        for text, wrong in NOT_UTF8:
            yield wrong, self.text(text), "ZKLOCK_INVALID_ARGUMENT"
        for text in TEXTS[name][1]:
            yield f"'{text[:12]}'", self.text(text), "ZKLOCK_INVALID_ARGUMENT"

    def of_enum(self, function, _parameter, name):
        known = self.header.enums[name]
        if function.says_status:
            yield from numbers(known.values(), none_of(known))
        else:
            yield from ((str(number), ("NUMBER", number), "NOTHING", f'"{name}"') for name, number in known.items())
            yield from ((number, ("NUMBER", number), "NOTHING", '"unknown"') for number in none_of(known))

    def of_milliseconds(self, _function, parameter, _):
        least, most = span(parameter)
        bad = [LEAST, "-1", str(int(least) - 1)] + ([] if most == MOST else [str(int(most) + 1), MOST])
        yield from numbers([least, most], dict.fromkeys(bad))

    def of_needs(self, _function, _parameter, _):
        yield from numbers(["0"], [LEAST, "-1", MOST])

    def of_number(self, _function, parameter, _):
        least, most = (int(number) for number in span(parameter))
        bad = (0, least - 1, most + 1, 2**32 - 1)
        yield from numbers([least, most], [number for number in bad if 0 <= number < least or most < number < 2**32])

    def of_locks(self, function, parameter, _):
        what = self.kind(parameter)[0]
        # There are two clients, and so there must be names.
        yield "NULL", ("NULL_POINTER", 0), "ZKLOCK_INVALID_ARGUMENT" if what == "names" else null(function, parameter)
        yield "not aligned", ("NOT_ALIGNED", 0), "ZKLOCK_INVALID_ARGUMENT"
        for second, wanted in SECONDS[what].items():
            yield f"with {second}", (what.upper(), second), wanted
        if what == "locks":
            # In a set it counts once.
            once = function.name == "zklock_all_new"
            yield "one twice", ("LOCKS", "ONE_IS_TWICE"), "ZKLOCK_OK" if once else "ZKLOCK_INVALID_ARGUMENT"

    of_clients = of_names = of_locks

    def of_timeout(self, function, _parameter, _):
        name = function.parameters[0].name
        kind = kind_of(f"zklock_{name}")
        ready, vain = WAITS.get(function.name, ("LIVE", "BUSY"))
        # A wait that is only started ends later; what an observer reports, it has not found yet.
        starts, is_late = function.name.endswith("_start"), function.name == "zklock_observer_next"
        for timeout in [*LONG, "0"]:
            wanted = "ZKLOCK_TIMEOUT" if is_late and timeout == "0" else "ZKLOCK_OK"
            yield f"{timeout}, {name} {ready.lower()}", ("NUMBER", timeout), (wanted, {name: (ready, kind)})
        for timeout in ([*LONG, "0"] if starts else ["0", "1"]) if vain else []:
            wanted = "ZKLOCK_OK" if starts else "ZKLOCK_PENDING" if "ZKLOCK_PENDING" in function.own else "ZKLOCK_TIMEOUT"
            yield f"{timeout}, {name} {vain.lower()}", ("NUMBER", timeout), (wanted, {name: (vain, kind)})
        yield from numbers([], LATE)

    def of_count(self, _function, parameter, _):
        at_least_one = "at least 1" in parameter.doc
        yield "0", ("NUMBER", 0), "ZKLOCK_INVALID_ARGUMENT" if at_least_one else "ZKLOCK_OK"
        # A bad one follows the good ones: nothing after it is read.
        yield from numbers([], ["INT32_MAX", "UINT32_MAX", "SIZE_MAX / sizeof(zklock_write)", "SIZE_MAX / 2", "SIZE_MAX"])

    def of_size(self, _function, _parameter, _):
        yield from numbers([0], ["SIZE_MAX / 2 + 1", "SIZE_MAX"])

    def of_room(self, function, parameter, base):
        has_size = base != "int32_t"
        yield "NULL", ("NULL_POINTER", 0), "ZKLOCK_INVALID_ARGUMENT" if has_size else null(function, parameter)
        if has_size:
            yield "NULL, and no room", ("NULL_POINTER", 0), ("ZKLOCK_OK", {"size": ("NUMBER", 0)})
        if base != "void":
            yield "not aligned", ("NOT_ALIGNED", 0), "ZKLOCK_INVALID_ARGUMENT"

    def of_array(self, function, parameter, struct):
        yield "NULL", ("NULL_POINTER", 0), null(function, parameter)
        yield "not aligned", ("NOT_ALIGNED", 0), "ZKLOCK_INVALID_ARGUMENT"
        for what, change, wanted in member_variants(self.header, struct):
            if function.name.endswith("_start") and wanted == "ZKLOCK_CONFLICT":
                wanted = "ZKLOCK_OK"  # It comes with the result.
            writes = good_writes()
            writes[0] = {**writes[0], **change}
            yield what, self.array(writes), wanted


STATES = {"FRESH", "LIVE", "CLOSED", "GRANTED", "BUSY", "NAMED", "TOLD", "ENTERED", "BEGUN", "WRITTEN", "SHOWN", "FOLLOWED", "WANTED"}


def place(known, item):
    """The index of an item, which is added if it is not there."""
    if item not in known:
        known.append(item)
    return known.index(item)


def kind_of(name):
    """zklock_hold: HOLD."""
    return name.removeprefix("zklock_").upper()


def numbers(good, bad):
    """The variants of a number."""
    for wanted, values in (("ZKLOCK_OK", good), ("ZKLOCK_INVALID_ARGUMENT", bad)):
        yield from ((str(value), ("NUMBER", f"(int64_t)({value})"), wanted) for value in values)


def none_of(known):
    """Numbers that an enum does not have."""
    numbers = known.values()
    return ["INT32_MIN", "-1", str(max(numbers) + 1), "99", "INT32_MAX"] + (["0"] if 0 not in numbers else [])


def span(parameter):
    """The valid numbers, according to the documentation."""
    if match := re.search(r"(\d+) to (\d+)", parameter.doc):
        return match[1], match[2]
    if "not negative" in parameter.doc:
        return "0", MOST
    if "positive" in parameter.doc:
        return "1", MOST
    raise NotUnderstood(f"which numbers of {parameter.name} are good: {parameter.doc}")


def null(function, parameter):
    """The status for NULL."""
    may = re.search(r"may be NULL|NULL for ", parameter.doc)
    if function.returns == "void" and not may:
        raise NotUnderstood(f"{function.name} does not say that NULL does nothing")
    return outcome(function)[0] if may else "ZKLOCK_INVALID_ARGUMENT"


def outcome(function):
    """The outcome of a good call: (status, text)."""
    if function.says_status:
        return "ZKLOCK_OK", "NULL"
    if function.returns == "void":
        return "NOTHING", "NULL"
    if function.name not in VALUES:
        raise NotUnderstood(f"{function.name} returns {function.returns}: what is it to be?")
    value = VALUES[function.name][0]
    return ("NOTHING", value) if function.returns == "const char *" else (value, "NULL")


def closed(function):
    """The outcome of a call with a closed client."""
    if function.returns == "void":
        return "NOTHING"
    return next((status for status in ("ZKLOCK_CLOSED", "ZKLOCK_LOST") if status in function.listed), "ZKLOCK_OK")


def check(function, kinds):
    """Checks the rules that the documentation of every function must follow."""
    if not function.says_status:
        if function.returns == "void" and (not function.name.endswith("_free") or kinds != ["handle"]):
            raise NotUnderstood(f"{function.name} returns nothing, but is no _free")
        return outcome(function)
    must = {"ZKLOCK_OK", "ZKLOCK_INTERNAL", "ZKLOCK_INVALID_ARGUMENT"}
    if "handle" in kinds:
        must |= {"ZKLOCK_INVALID_HANDLE", "ZKLOCK_FORKED"}
    if not must <= function.listed:
        raise NotUnderstood(f"{function.name} does not list {must - function.listed}")
    return None


def good_writes():
    """Two writes that leave nothing behind."""
    return [
        {"kind": "ZKLOCK_WRITE_CREATE", "version": -1, "path": '"/misuse"', "data": '"data"', "length": 4, "reserved": "{0, 0}"},
        {"kind": "ZKLOCK_WRITE_DELETE", "version": -1, "path": '"/misuse"', "data": "NULL", "length": 0, "reserved": "{0, 0}"},
    ]


def member_variants(header, struct):
    """The wrong values of each member of the first write, as (what, members, wanted)."""
    bad = "ZKLOCK_INVALID_ARGUMENT"
    texts = [text for text, _ in NOT_UTF8] + TEXTS["path"][1]
    # Their length alone is too large, so nobody may read them.
    lengths = ("UINT32_MAX", "SIZE_MAX / 4", "SIZE_MAX / 2", "SIZE_MAX / 2 + 1", "SIZE_MAX")
    rules = {
        "zklock_write_kind kind": [(f"kind {n}", {"kind": f"(zklock_write_kind){n}"}, bad) for n in none_of(header.enums["zklock_write_kind"])],
        # The node does not exist, so it has no version.
        "int32_t version": [
            (f"version {n} of no node", {"kind": "ZKLOCK_WRITE_SET", "version": n}, bad if n == "INT32_MIN" else "ZKLOCK_CONFLICT")
            for n in ("INT32_MIN", "-1", "0", "99", "INT32_MAX")
        ],
        "const char * path": [("path NULL", {"path": "NULL"}, bad), *((f"path '{text}'", {"path": f'"{text}"'}, bad) for text in texts)],
        "const void * data": [
            ("data NULL, and empty", {"data": "NULL", "length": 0}, "ZKLOCK_OK"),
            ("data NULL, but some", {"data": "NULL", "length": 1}, bad),
        ],
        "size_t length": [
            ("length 0", {"length": 0}, "ZKLOCK_OK"),
            ("length 512 KiB + 1", {"data": "half_a_mebibyte", "length": "512 * 1024 + 1"}, bad),
            *((f"length {length}", {"length": length}, bad) for length in lengths),
        ],
        "uint64_t[2] reserved": [(f"reserved {value}", {"reserved": value}, bad) for value in ("{1, 0}", "{0, UINT64_MAX}")],
    }
    for member in header.structs[struct]:
        declared = f"{member.type} {member.name}"
        if declared not in rules:
            raise NotUnderstood(f"no rule for the member {declared} of {struct}")
        yield from rules[declared]


def main(source, target):
    """Writes the matrix, or reports what it does not understand."""
    header = read(source)
    matrix = Matrix(header)
    for function in header.functions:
        matrix.function(function)
    from emit import emit

    with open(target, "w", encoding="utf-8") as file:
        file.write(emit(matrix, VALUES))
    print(f"{len(header.functions)} functions, {len(matrix.cells)} cells")


if __name__ == "__main__":
    try:
        main(*sys.argv[1:3])
    except NotUnderstood as reason:
        sys.exit(f"generate.py: {reason}")
