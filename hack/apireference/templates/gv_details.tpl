{{- define "gvDetails" }}
The kinds belong to `{{ .GroupVersionString }}`:
{{ range .SortedKinds }}
- {{ $.TypeForKind . | markdownRenderTypeLink }}
{{- end }}
{{ range .SortedTypes -}}
{{ template "type" . }}
{{- end -}}
{{- end -}}
