"""AAG's speed: the critical path, what the house adds to LangGraph, and many runs at once.

Run with `python benchmarks/aag.py`. Every figure is a ratio of two measurements of the same run of this script.
"""

import asyncio
import statistics
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from langchain_core.messages import HumanMessage
from langchain_openai import ChatOpenAI
from rich.console import Console
from rich.table import Table

from benchmarks.bare import bare_aag
from stepcraft import build_aag
from tests.kitchen import GOAL, cook, forever, small_memory
from tests.scripted import ScriptedModel
from tests.servers.openai_server import OpenAIServer
