{{- define "type_members" -}}
{{- if eq .Name "metadata" -}}
Names, labels and annotations, as of every object of Kubernetes.
{{- else -}}
{{ template "prose" .Doc }}
{{- end -}}
{{- end -}}
