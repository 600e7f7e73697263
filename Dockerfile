# The pages, without torch: networks run where HEADLIGHT_ENGINE says. docs/hosting.md tells why there are two images.
FROM python:3.11-slim-bookworm

WORKDIR /headlight
# Chinese, Japanese and Korean text in figures for print (docs/figures.md).
RUN apt-get update && apt-get install -y --no-install-recommends fonts-wqy-microhei=0.2.0-beta-3.1 && rm -rf /var/lib/apt/lists/*
COPY requirements-web.txt ./
RUN pip install --no-cache-dir -r requirements-web.txt
COPY app.py LICENSE ./
COPY .streamlit .streamlit
COPY model model
COPY viz viz
COPY docs docs
COPY lectures lectures

RUN useradd --uid 10001 --create-home headlight
USER 10001
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1

EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"]
CMD ["streamlit", "run", "app.py", "--server.address=0.0.0.0", "--server.port=8501", "--server.headless=true"]
