"""The formula that a docstring states as Python, as LaTeX."""

from __future__ import annotations

import ast
import re

import dmlops

LETTERS = ("alpha", "beta", "gamma", "epsilon")
OPERATORS = {ast.Add: "+", ast.Sub: "-", ast.Mult: r"\,", ast.USub: "-"}
COMPARISONS = {ast.Eq: "=", ast.GtE: r"\ge", ast.Gt: ">", ast.LtE: r"\le", ast.Lt: "<"}
# Precedence: an operand of lower precedence than its operator gets parentheses.
LOOSE, SUM, PRODUCT, ATOM = range(4)


def formula(name: str) -> str:
    """Return the formula of the function `name`, the first literal of its docstring, as LaTeX."""
    text = getattr(dmlops, name).__doc__
    stated = re.search(r"``(.+?)``", text, re.DOTALL)
    if stated is None:
        raise ValueError(f"{name}: its docstring states no formula")
    return latex(ast.parse(stated[1], mode="eval").body)


def latex(node: ast.expr, around: int = LOOSE) -> str:
    """Return an expression as LaTeX, in parentheses if it binds less tightly than `around`."""
    text, own = _latex(node)
    return rf"\left( {text} \right)" if own < around else text


def _latex(node: ast.expr) -> tuple[str, int]:  # noqa: PLR0911, PLR0912 - one case for each kind
    match node:
        case ast.IfExp():
            return _cases(node), LOOSE
        case ast.BinOp(op=ast.Div()):
            return rf"\frac{{{latex(node.left)}}}{{{latex(node.right)}}}", ATOM
        case ast.BinOp(op=ast.Mult()):
            factors = f"{latex(node.left, PRODUCT)} {OPERATORS[ast.Mult]} "
            return factors + latex(node.right, PRODUCT), PRODUCT
        case ast.BinOp():
            sign = OPERATORS[type(node.op)]
            return f"{latex(node.left, SUM)} {sign} {latex(node.right, PRODUCT)}", SUM
        case ast.UnaryOp():
            return f"{OPERATORS[type(node.op)]}{latex(node.operand, PRODUCT)}", SUM
        case ast.Compare(ops=[sign]):
            (right,) = node.comparators
            return f"{latex(node.left)} {COMPARISONS[type(sign)]} {latex(right)}", LOOSE
        case ast.BoolOp(op=ast.And()):
            return r" \text{ and } ".join(map(latex, node.values)), LOOSE
        case ast.Call(func=ast.Name(id="exp"), args=[ast.BinOp(op=ast.Div()) as ratio]):
            return f"e^{{{latex(ratio.left, ATOM)} / {latex(ratio.right, ATOM)}}}", ATOM
        case ast.Call(func=ast.Name(id="exp")):
            return f"e^{{{latex(node.args[0])}}}", ATOM
        case ast.Call(func=ast.Name(id="sqrt")):
            return rf"\sqrt{{{latex(node.args[0])}}}", ATOM
        case ast.Call(func=ast.Name(id="abs")):
            return rf"\left| {latex(node.args[0])} \right|", ATOM
        case ast.Call(func=ast.Name(id="sum")):
            return rf"\sum {latex(node.args[0], ATOM)}", PRODUCT
        case ast.Call(func=ast.Name(id=name)):
            function = rf"\operatorname{{{name.removesuffix('imum')}}}"
            return rf"{function}\left( {', '.join(map(latex, node.args))} \right)", ATOM
        case ast.Name(id=name):
            word = name.replace("_", r"\_")
            letter = rf"\{name}" if name in LETTERS else rf"\mathit{{{word}}}"
            return name if len(name) == 1 else letter, ATOM
        case ast.Constant(value=value):
            return str(value), ATOM
    raise ValueError(f"no LaTeX for {ast.dump(node)}")


def _cases(node: ast.IfExp) -> str:
    lines = []
    rest: ast.expr = node
    while isinstance(rest, ast.IfExp):
        lines.append(rf"{latex(rest.body)} & \text{{if }} {latex(rest.test)}")
        rest = rest.orelse
    lines.append(rf"{latex(rest)} & \text{{otherwise}}")
    return r"\begin{cases} " + r" \\ ".join(lines) + r" \end{cases}"
