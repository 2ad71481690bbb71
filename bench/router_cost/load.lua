-- wrk's script: POST the file named by BODY, closed loop; one JSON line of what was measured.
local file = assert(io.open(os.getenv("BODY"), "rb"))
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
wrk.body = file:read("*a")
file:close()

function done(summary, latency)
  local e = summary.errors
  io.write(string.format(
    '\nRESULT {"requests":%d,"seconds":%.6f,"p50_us":%.1f,"p99_us":%.1f,"errors":%d}\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50), latency:percentile(99),
    e.connect + e.read + e.write + e.status + e.timeout))
end
