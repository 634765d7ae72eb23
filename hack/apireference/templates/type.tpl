{{- define "type" -}}
{{- if markdownShouldRenderType . }}
## {{ .Name }}

{{ template "prose" .Doc }}
{{- if .References }}

Used in {{ range $i, $each := .SortedReferences }}{{ if $i }}, {{ end }}{{ markdownRenderTypeLink $each }}{{ end }}.
{{- end }}
{{- if .Members }}

| field | type | default | meaning |
|---|---|---|---|
{{- if .GVK }}
| `apiVersion` | string | | `{{ .GVK.Group }}/{{ .GVK.Version }}` |
| `kind` | string | | `{{ .GVK.Kind }}` |
{{- end }}
{{- range .Members }}
| `{{ .Name }}` | {{ markdownRenderType .Type }} | {{ with .Default }}`{{ . }}` {{ end }}| {{ template "type_members" . }} |
{{- end }}
{{- end }}
{{- if .EnumValues }}

| value | meaning |
|---|---|
{{- range .EnumValues }}
| `{{ .Name }}` | {{ regexReplaceAll "^[A-Z][A-Za-z]* " (trim .Doc) "" | replace "\n" " " }} |
{{- end }}
{{- end }}
{{ end -}}
{{- end -}}
