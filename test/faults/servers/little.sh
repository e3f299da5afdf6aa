#!/bin/sh
# A server that is small enough to be started by the hundred: `pid` gives its process. Requests have integers of the
# gateway's as ids, which stand at the head.
while IFS= read -r line; do
  case $line in *'"id":'*) ;; *) continue ;; esac
  id=${line#*'"id":'}
  id=${id%%[,\}]*}
  case $line in
    *'"method":"initialize"'*)
      result='{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"little","version":"1"}}'
      ;;
    *'"method":"tools/list"'*) result='{"tools":[{"name":"pid","inputSchema":{"type":"object"}}]}' ;;
    *'"method":"tools/call"'*) result='{"content":[{"type":"text","text":"'$$'"}]}' ;;
    *)
      printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"no such method"}}'
      continue
      ;;
  esac
  printf '%s\n' '{"jsonrpc":"2.0","id":'"$id"',"result":'"$result"'}'
done
