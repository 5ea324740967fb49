# syntax=docker/dockerfile:1
# unembed in a container: docker build -t unembed . && docker run --rm -v "$PWD:/data" unembed audit 'chroma:./db#notes'
# Built in two stages, so that no compiler and no cache is in the result. torch comes without CUDA.

FROM python:3.11-slim AS build
ARG EXTRAS=encoders,leaks,chroma,qdrant,pgvector
ARG TORCH=2.13.0
WORKDIR /build
RUN python -m venv /opt/unembed
ENV PATH=/opt/unembed/bin:$PATH
RUN pip install --no-cache-dir --index-url https://download.pytorch.org/whl/cpu "torch==$TORCH"
COPY pyproject.toml README.md LICENSE ./
COPY configs configs
COPY src src
# hadolint ignore=DL3013
RUN pip install --no-cache-dir ".[$EXTRAS]"

FROM python:3.11-slim
LABEL org.opencontainers.image.title="unembed" \
      org.opencontainers.image.description="Reads the text back out of an embedding vector" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/unembed /opt/unembed
# The database is mounted at /data. Whoever runs it needs no rights there but to read, and to write the report.
RUN useradd --create-home --uid 1000 auditor && mkdir /data && chown auditor /data
USER 1000
WORKDIR /data
ENV PATH=/opt/unembed/bin:$PATH HF_HUB_OFFLINE=1 PYTHONUNBUFFERED=1
ENTRYPOINT ["unembed"]
CMD ["--help"]
