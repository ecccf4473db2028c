"""A graph as a Mermaid diagram, as the documentation shows it.

LangGraph's own drawing has a line for each arrow, and the descriptions of the nodes within them.
"""

from langchain_core.runnables.graph import Edge
from langgraph.graph import END, START

from stepcraft.graphs.compile import Graph


def drawing(graph: Graph, *, xray: bool = True) -> str:
    """Draw a graph: solid arrows are always taken, dashed ones where the state asks for them.

    Args:
        graph: The compiled graph.
        xray: Whether the nodes of its subgraphs are drawn, too.
    """
    blocks: dict[str, dict[tuple[str, str], list[str]]] = {"": {}}
    for edge in _in_order(graph.get_graph(xray=xray).edges):
        block, source, target = _ends(edge)
        if source == START or not source or not target:
            continue
        arrow = "-.->" if edge.conditional else "-->"
        targets = blocks.setdefault(block, {}).setdefault((source, arrow), [])
        if target not in targets:
            targets.append(target)
    lines = ["flowchart TD", *_arrows(blocks.pop(""), "  ")]
    for block, arrows in blocks.items():
        lines += [f"  subgraph {block}", *_arrows(arrows, "    "), "  end"]
    return "\n".join(lines)


def _in_order(edges: list[Edge]) -> list[Edge]:
    """The edges in the order in which a run can first come to them."""
    known, reached = {START: 0}, [START]
    for name in reached:
        for target in sorted(edge.target for edge in edges if edge.source == name):
            if target not in known:
                known[target] = len(known)
                reached.append(target)
    return sorted(edges, key=lambda edge: (known.get(edge.source, len(known)), known.get(edge.target, 0)))


def _ends(edge: Edge) -> tuple[str, str, str]:
    """The subgraph that an edge is in, "" for none, and its ends; "" for an end that is not drawn.

    An edge that leads into a subgraph or out of it is drawn to its frame.
    """
    source_block, _, source = edge.source.rpartition(":")
    target_block, _, target = edge.target.rpartition(":")
    if source_block != target_block:
        return "", source_block or source, target_block or target
    if not source_block:
        return "", source, "done([answer])" if target == END else target
    if {source, target} & {START, END}:
        return source_block, "", ""
    return source_block, f"{source_block}_{source}[{source}]", f"{source_block}_{target}[{target}]"


def _arrows(arrows: dict[tuple[str, str], list[str]], indent: str) -> list[str]:
    return [f"{indent}{source} {arrow} {' & '.join(targets)}" for (source, arrow), targets in arrows.items()]
