# syntax=docker/dockerfile:1
# One image for all services, the jobs and the command line; the command says which.

FROM python:3.13-slim-trixie AS build
# Pinned: the lock file's format follows uv.
RUN pip install --no-cache-dir uv==0.13.9
ENV UV_LINK_MODE=copy UV_COMPILE_BYTECODE=1 UV_PYTHON_DOWNLOADS=never UV_PROJECT_ENVIRONMENT=/opt/winnow
WORKDIR /src
# Dependencies first: they change less often than the code, and this layer is kept then.
COPY pyproject.toml uv.lock ./
RUN --mount=type=cache,target=/root/.cache/uv \
    uv sync --frozen --no-dev --no-install-project --extra services --extra anthropic
COPY README.md LICENSE ./
COPY libs libs
COPY services services
COPY migrations migrations
RUN --mount=type=cache,target=/root/.cache/uv \
    uv sync --frozen --no-dev --no-editable --extra services --extra anthropic

FROM python:3.13-slim-trixie
RUN useradd --system --uid 10001 --no-create-home --shell /usr/sbin/nologin winnow
COPY --from=build /opt/winnow /opt/winnow
ENV PATH=/opt/winnow/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 WINNOW_LOG_FORMAT=json
USER winnow
# Nothing is written here; a folder that is no package keeps `python -m services` from importing anything but the installed one.
WORKDIR /tmp
# SIGTERM drains: see WINNOW_GRACEFUL_TIMEOUT_S. The command is the process itself, no shell stands between.
STOPSIGNAL SIGTERM
CMD ["python", "-m", "services"]
