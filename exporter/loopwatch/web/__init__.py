"""What a process serves over HTTP: /metrics, /healthz, /readyz and a plain page. Read only: no request changes anything."""
