"""Sends every query of a Grafana dashboard to a Prometheus, with the variables filled in as Grafana does, and looks at the answers.

    dashboard.py DASHBOARD.json http://localhost:9090 [SECONDS]

Each query is sent twice: with "All" chosen in every variable, and with every value chosen by itself. It must be answered without an
error and, starts of brokers excepted, with numbers whose series have the labels that the panel's legend or table names: so somebody must
produce, consume in a group and make mistakes meanwhile. Queries that have nothing yet are asked again until SECONDS (180) have passed:
rates want some scrapes first.
"""

import json
import math
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

SCRAPE_SECONDS = 15
# What Grafana takes for a short range: four scrapes.
RATE_INTERVAL = "1m"
RANGE_SECONDS = 300

# No broker starts while the dashboard is looked at.
RIGHTLY_EMPTY = {"Starts"}


def ask(server, path, **parameters):
    url = f"{server}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            return json.load(answer)["data"]
    except urllib.error.HTTPError as error:
        raise SystemExit(f"{url}\n{error.code} {error.read().decode(errors='replace')}") from None


def escaped(value):
    """As Grafana writes a chosen value into a regular expression inside a quoted string."""
    return re.sub(r"[$^*{}\[\]'+?.()|]", r"\\\\\g<0>", value)


class Variables:
    """What stands behind $name; `choose_all` is the choice "All", else all values are chosen one by one."""

    def __init__(self, server, dashboard, choose_all):
        self.filled = {"__rate_interval": RATE_INTERVAL, "__interval": f"{SCRAPE_SECONDS}s", "__range": f"{RANGE_SECONDS}s"}
        self.empty = []
        for variable in dashboard["templating"]["list"]:
            name = variable["name"]
            if variable["type"] == "datasource":
                assert variable["query"] == "prometheus", variable
                continue
            assert variable["type"] == "query" and variable["multi"] and variable["includeAll"], variable
            values = self.values(server, variable["query"]["query"])
            if not values:
                self.empty.append(name)
            one_by_one = "(" + "|".join(map(escaped, values)) + ")"
            self.filled[name] = variable.get("allValue") or one_by_one if choose_all else one_by_one

    def values(self, server, query):
        """label_values(selector, label), the one kind of query that these variables have."""
        selector, label = re.fullmatch(r"label_values\((.*), *(\w+)\)", query).groups()
        return ask(server, f"label/{label}/values", **{"match[]": self.fill(selector)})

    def fill(self, text):
        return re.sub(r"\$(?:\{(\w+)\}|(\w+))", lambda found: self.filled[found[1] or found[2]], text)


def panels(of):
    for panel in of.get("panels", []):
        yield panel
        yield from panels(panel)


def check_sources(dashboard):
    """Everything asks the data source that the variable names."""
    kinds = [variable["name"] for variable in dashboard["templating"]["list"] if variable["type"] == "datasource"]
    wanted = {"type": "prometheus", "uid": "${%s}" % kinds[0]}
    asking = [p for p in panels(dashboard) if p["type"] != "row"]
    asking += [target for panel in asking for target in panel["targets"]]
    asking += [variable for variable in dashboard["templating"]["list"] if variable["type"] == "query"]
    asking += dashboard["annotations"]["list"]
    return [f"{one.get('title') or one.get('name') or one}: {one.get('datasource')}" for one in asking if one.get("datasource") != wanted]


def query(server, expression, instant):
    if instant:
        return [(one["metric"], [one["value"]]) for one in ask(server, "query", query=expression)["result"]]
    end = time.time()
    found = ask(server, "query_range", query=expression, start=end - RANGE_SECONDS, end=end, step=SCRAPE_SECONDS)
    return [(one["metric"], one["values"]) for one in found["result"]]


def problem(panel, target, series):
    """What is missing in an answer."""
    drawn = [labels for labels, values in series if any(math.isfinite(float(value)) for _, value in values)]
    if not drawn:
        return None if panel["title"] in RIGHTLY_EMPTY else "no data"
    named = set(re.findall(r"\{\{\s*(\w+)\s*\}\}", target.get("legendFormat") or ""))
    for transformation in panel.get("transformations", []):
        named |= set(transformation["options"].get("renameByName", {})) - {"Value", "Time"}
    for labels in drawn:
        if missing := named - set(labels):
            return f"the panel names {sorted(missing)}, the series has {sorted(labels)}"
    return None


def queries(dashboard):
    for panel in panels(dashboard):
        for target in panel.get("targets", []):
            yield panel, target
    for note in dashboard["annotations"]["list"]:
        yield {"title": note["name"]}, {"refId": "annotation", "expr": note["expr"]}


def round_of(server, dashboard):
    """One walk through all queries: problems by query, number of queries, those that are rightly empty."""
    problems, count, empty = {}, 0, set()
    for choose_all in (True, False):
        variables = Variables(server, dashboard, choose_all)
        problems |= {f"variable {name}": "no values" for name in variables.empty}
        for panel, target in queries(dashboard):
            name = f"{panel['title']} {target['refId']}"
            series = query(server, variables.fill(target["expr"]), target.get("instant", False))
            if found := problem(panel, target, series):
                problems[name] = f"{found}: {variables.fill(target['expr'])}"
            if not series:
                empty.add(name)
            count += 1
    return problems, count, empty - set(problems)


def main():
    dashboard = json.load(open(sys.argv[1], encoding="utf-8"))
    server = sys.argv[2].rstrip("/")
    until = time.monotonic() + float(sys.argv[3] if len(sys.argv) > 3 else 180)
    if elsewhere := check_sources(dashboard):
        sys.exit("not the data source of the variable:\n" + "\n".join(elsewhere))
    problems, count, empty = round_of(server, dashboard)
    while problems and time.monotonic() < until:
        time.sleep(5)
        problems, count, empty = round_of(server, dashboard)
    for name, why in problems.items():
        print(f"{name}: {why}")
    print(f"{count} queries answered, {len(problems)} of them badly; nothing to show: {', '.join(sorted(empty)) or 'none'}")
    sys.exit(1 if problems else 0)


if __name__ == "__main__":
    main()
