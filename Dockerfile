# swarm-rescue as an unprivileged user in a container: the programs of models run in the tier that the host allows,
# in a plain container `strict`, and the report says which it was (docs/grader.md).
#
#   docker build -t swarm-rescue .
#   docker run --rm -v "$PWD/runs:/runs" --user "$(id -u):$(id -g)" swarm-rescue run.py --dry-run
#
# Any command of the root stands in run.py's place. Results go to /runs/out, data sets to /runs/.huggingface.
FROM python:3.13-slim

WORKDIR /app
# The dependencies by themselves, so that a change of the code does not install them again.
COPY pyproject.toml README.md LICENSE ./
RUN pip install --no-cache-dir . && rm -rf build *.egg-info

COPY . .

# Without --user: somebody who owns nothing but /runs. Home and caches lie where any user may write.
RUN useradd --uid 10001 --no-create-home --shell /usr/sbin/nologin runner && mkdir /runs && chown runner /runs
ENV HOME=/tmp HF_HOME=/runs/.huggingface MPLCONFIGDIR=/tmp/matplotlib PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER runner
WORKDIR /runs

ENTRYPOINT ["sh", "-c", "exec python /app/\"$0\" \"$@\""]
CMD ["run.py", "--dry-run"]
