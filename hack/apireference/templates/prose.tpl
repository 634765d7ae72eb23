{{- define "prose" -}}
{{ markdownRenderFieldDoc . | replace "<br />" " " | trim | replace "<" "&lt;" }}
{{- end -}}
