"""Processes that work for this one: of this machine or, with Dask distributed, of several machines.

Those of this machine get their work through pipes. Nothing listens, so no other user of the machine reaches them, and nothing of them
remains on disk or in shared memory, however the program ends.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import pickle
import signal
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from multiprocessing import connection
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ._weir import WeirError

if TYPE_CHECKING:
    from distributed import Client

#: Jobs that are with the workers for each of their threads: enough that none waits.
AHEAD = 4
#: Interval at which a client of Dask looks how many workers there are, s.
WORKERS_S = 2.0
#: Workers that a job may end before it is given up.
WORKERS_ENDED_MAX = 3
#: How long a worker may take to end before it is killed, s.
END_TIMEOUT_S = 2.0


def cores() -> int:
    """The cores that this process may use."""
    with contextlib.suppress(AttributeError):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def dumps(value: object) -> bytes:
    """The value for another process. Classes of a script travel whole if cloudpickle is there."""
    try:
        import cloudpickle
    except ImportError:
        return pickle.dumps(value)
    content: bytes = cloudpickle.dumps(value)
    return content


def travels(controller: object) -> bool:
    """Whether another process can have this controller: a name, or a class that it can import or that is sent whole."""
    if isinstance(controller, str):
        return True
    try:
        import cloudpickle  # noqa: F401
    except ImportError:
        name: str = getattr(controller, "__qualname__", "<locals>")
        return getattr(controller, "__module__", "__main__") != "__main__" and "<" not in name
    return True


class _Worker:
    """A process, and its end of the pipe."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, far = context.Pipe()
        self.process = context.Process(target=_serve, args=(far,), daemon=True)
        #: Number of the job that it does.
        self.job: int | None = None
        with _script_is_read_once(), _without_interrupt():
            self.process.start()
        far.close()


class Pool:
    """Some processes that call one function with each job, and return what came of it in any order."""

    def __init__(self, task: Callable[[Any], Any], count: int, retries: int = 0):
        self._task = dumps(task)
        self._count = count
        self._retries = retries
        self._workers: list[_Worker] = []
        self._jobs: dict[int, tuple[object, bytes]] = {}
        self._waiting: deque[int] = deque()
        self._errors: dict[int, int] = {}
        self._ended: dict[int, int] = {}
        self._next = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self._workers:
            worker.process.terminate()
        for worker in self._workers:
            worker.process.join(END_TIMEOUT_S)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            worker.pipe.close()

    def threads(self) -> int:
        """The number of jobs that are done at the same time."""
        return self._count

    def submit(self, job: object, name: str | None = None) -> None:
        """Adds a job. Its name is for a scheduler; here nobody asks for it."""
        self._jobs[self._next] = (job, dumps(job))
        self._waiting.append(self._next)
        self._next += 1
        self._hand_out()

    def next(self) -> tuple[Any, Any]:
        """Waits for a job. Returns it with its result, or raises what it raised the last time."""
        while True:
            self._hand_out()
            busy = {it.pipe: it for it in self._workers if it.job is not None}
            [pipe, *_] = connection.wait(list(busy))
            worker = busy[pipe]
            number = worker.job
            assert number is not None, "a busy worker has a job"
            try:
                is_done, result = pickle.loads(worker.pipe.recv_bytes())
            except (EOFError, ConnectionResetError):
                self._replace(worker, number)
                continue
            worker.job = None
            if is_done:
                return self._jobs.pop(number)[0], result
            self._errors[number] = self._errors.get(number, 0) + 1
            if self._errors[number] > self._retries:
                raise result
            self._waiting.appendleft(number)

    def _hand_out(self) -> None:
        for worker in self._workers:
            if worker.job is None and self._waiting:
                self._give(worker)
        while self._waiting and len(self._workers) < self._count:
            worker = _Worker()
            self._workers.append(worker)
            self._give(worker)

    def _give(self, worker: _Worker) -> None:
        worker.job = self._waiting.popleft()
        # A worker that has ended is found by `next`.
        with contextlib.suppress(BrokenPipeError):
            worker.pipe.send_bytes(self._task)
            worker.pipe.send_bytes(self._jobs[worker.job][1])

    def _replace(self, worker: _Worker, number: int) -> None:
        """Another worker gets the job of one that has ended."""
        self._workers.remove(worker)
        worker.process.join()
        worker.pipe.close()
        self._waiting.appendleft(number)
        self._ended[number] = self._ended.get(number, 0) + 1
        if self._ended[number] > WORKERS_ENDED_MAX:
            raise WeirError(
                f"a unit of work ended its worker {self._ended[number]} times "
                f"(exit code {worker.process.exitcode})"
            )


class DaskPool:
    """The same with the workers of a Dask scheduler, which have the same wheel."""

    def __init__(self, client: Client, task: Callable[[Any], Any], retries: int = 0):
        from distributed import as_completed

        self._client = client
        self._task = task
        self._retries = retries
        self._jobs: dict[object, object] = {}
        self._waiting = as_completed([])
        self._threads = 0
        self._looked = -math.inf

    def threads(self) -> int:
        """Threads of the workers that are there now; workers may join at any time."""
        if time.perf_counter() - self._looked > WORKERS_S:
            self._threads = max(1, sum(self._client.nthreads().values()))
            self._looked = time.perf_counter()
        return self._threads

    def submit(self, job: object, name: str | None = None) -> None:
        """Adds a job. A job of the same name is done once."""
        key = None if name is None else f"weir-{name}"
        future = self._client.submit(
            self._task, job, key=key, retries=self._retries, pure=name is not None
        )
        self._jobs[future.key] = job
        self._waiting.add(future)

    def next(self) -> tuple[Any, Any]:
        """Waits for a job. Returns it with its result, or raises what it raised the last time."""
        future = next(self._waiting)
        result = future.result()
        future.release()
        return self._jobs.pop(future.key), result


@contextlib.contextmanager
def hands_of(
    task: Callable[[Any], Any], scheduler: str | None, workers: int | None, retries: int
) -> Iterator[DaskPool | Pool]:
    """The workers of a scheduler, or processes of this machine. Dask's own failures become a line."""
    if scheduler is None:
        with Pool(task, workers or cores(), retries) as pool:
            yield pool
        return
    try:
        from distributed import Client
        from distributed.comm import CommClosedError
        from distributed.scheduler import KilledWorker
    except ImportError:
        raise WeirError("--scheduler needs Dask: pip install distributed") from None
    try:
        try:
            client = Client(scheduler)
        except (ValueError, TypeError) as error:
            raise WeirError(f"{scheduler} is no address of a scheduler: {error}") from None
        with client:
            yield DaskPool(client, task, retries)
    except KilledWorker as error:
        raise WeirError(f"a unit of work ended its worker several times: {error}") from error
    except (CancelledError, CommClosedError) as error:
        raise WeirError(
            "the scheduler is lost: start it, and the same command again goes on"
        ) from error


def in_processes(task: Callable[[Any], Any], jobs: list[Any], count: int) -> Iterator[Any]:
    """What the task returns for each job, in the order of their ends."""
    with Pool(task, min(count, len(jobs))) as pool:
        for job in jobs:
            pool.submit(job)
        for _ in jobs:
            yield pool.next()[1]


def _serve(pipe: connection.Connection) -> None:
    """What a worker does until the other end of its pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(EOFError, BrokenPipeError, ConnectionResetError):
        while True:
            task, job = pipe.recv_bytes(), pipe.recv_bytes()
            try:
                answer = (True, pickle.loads(task)(pickle.loads(job)))
            except Exception as error:  # noqa: BLE001 - the code of a user may raise anything
                answer = (False, error)
            pipe.send_bytes(_answered(answer))


def _answered(answer: tuple[bool, Any]) -> bytes:
    try:
        content = dumps(answer)
        pickle.loads(content)
    except Exception:  # noqa: BLE001 - the code of a user may raise anything
        # An exception that cannot be made again from its arguments.
        return pickle.dumps((False, WeirError(f"{type(answer[1]).__name__}: {answer[1]}")))
    return content


@contextlib.contextmanager
def _without_interrupt() -> Iterator[None]:
    """A process that starts meanwhile never sees Ctrl-C, which a terminal sends to it, too. This one ends it."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextlib.contextmanager
def _script_is_read_once() -> Iterator[None]:
    """Workers that start meanwhile do not read the caller's script.

    A spawned process runs the script of its parent again, so a call that is not below
    `if __name__ == "__main__"` would start workers of workers (Python's documentation of `multiprocessing`, "Safe
    importing of main module"). Workers need nothing of it: classes of the script travel whole (cloudpickle).
    """
    main = vars(sys.modules["__main__"])
    hidden = {name: main.pop(name, None) for name in ("__file__", "__spec__")}
    main["__spec__"] = None
    try:
        yield
    finally:
        main.update(
            {
                name: value
                for name, value in hidden.items()
                if name == "__spec__" or value is not None
            }
        )
