# One line in, one reply out, or none. A method is a jq function of its parameters; what it raises with `fail` is the
# error that the host gets.

def fail($code; $message): error({code: $code, message: $message});

def text($name):
  if type != "object" or (.[$name] | type) != "string" then fail(-32602; $name + " must be a string")
  else .[$name] end;

def station:
  text("content_id") as $id
  | [$stations[] | select(.content_id == $id)]
  | if length == 0 then fail(3; "no station " + $id[:100]) else .[0] end;

def search:
  (text("query") | ascii_downcase) as $query
  | (.kinds // ["track"]) as $kinds
  | (if .limit == null then 50 else .limit end) as $limit
  | if ($kinds | type) != "array" then fail(-32602; "kinds must be a list")
    elif ($limit | type) != "number" or $limit < 1 or $limit > 500 then fail(-32602; "limit must be from 1 to 500")
    else
      [$stations[] | select((.title | ascii_downcase | contains($query)) and ($kinds | index("track") != null))
       | {kind: "track", content_id, title}]
      | {results: .[:$limit]}
    end;

def call($method):
  $manifest[0] as $me
  | if $method == "initialize" then
      {protocol: $me.protocol, id: $me.id, version: $me.version, capabilities: $me.capabilities,
       scopes: (.scopes // [])}
    elif $method == "ping" then {status: "ok", version: $me.version, capabilities: $me.capabilities}
    elif $method == "search" then search
    elif $method == "get_track" then {track: (station | {content_id, title})}
    elif $method == "stream" then station | {url, content_type, live: (.live // false)}
    else fail(-32601; "no method " + $method[:100]) end;

def reply:
  if type != "object" then {id: null, error: {code: -32700, message: "not a JSON object"}}
  elif has("id") and has("method") then
    if (.id | type) != "number" and (.id | type) != "string" then
      {id: null, error: {code: -32600, message: "id must be a number or a string"}}
    elif .jsonrpc != "2.0" or (.method | type) != "string" then
      {id, error: {code: -32600, message: "jsonrpc must be \"2.0\" and method a string"}}
    else
      .method as $method
      | {id} + (try {result: (.params // {} | call($method))}
                catch {error: (if type == "object" then . else {code: 1, message: tostring} end)})
    end
  else empty  # a notification or a stray reply is not answered
  end;

(try fromjson catch null) | reply | {jsonrpc: "2.0"} + . | tojson
