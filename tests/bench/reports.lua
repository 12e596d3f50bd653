-- Requests of tests/bench/bench_wrk.py: each thread posts the bodies of its own file, and writes down the status of each answer.
-- A body lies in the file as a line "id length" and its bytes.

local threads = 0

function setup(thread)
  threads = threads + 1
  thread:set("number", threads)
end

function init(args)
  folder = args[1]
  file = assert(io.open(folder .. "/bodies-" .. number, "rb"))
  answers = assert(io.open(folder .. "/answers-" .. number, "w"))
  key = args[2]
  path = args[3]
end

function request()
  local line = file:read("*l")
  if line == nil then
    file:seek("set", 0)
    line = file:read("*l")
  end
  local id, length = line:match("^(%S+) (%d+)$")
  local body = file:read(tonumber(length))
  return wrk.format("POST", path, {
    ["Host"] = wrk.host,
    ["Authorization"] = "Bearer " .. key,
    ["Content-Type"] = "application/json",
    ["Content-Encoding"] = "gzip",
    ["X-Request-ID"] = id,
  }, body)
end

function response(status, headers, body)
  answers:write(status, " ", headers["x-request-id"] or headers["X-Request-ID"] or "", "\n")
end

function done(summary, latency, requests)
  io.write("duration_us ", summary.duration, "\n")
  for _, kind in ipairs({"connect", "read", "write", "timeout"}) do
    io.write("errors_", kind, " ", summary.errors[kind], "\n")
  end
  for _, share in ipairs({50, 99}) do
    io.write("p", share, "_us ", latency:percentile(share), "\n")
  end
end
