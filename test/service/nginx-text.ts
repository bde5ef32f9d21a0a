/** A configuration of nginx for a test: one process in the foreground, whose files are in a folder. */
export function nginxText(text: string, folder: string): string {
  const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map(
    (name) => ` ${name}_temp_path ${folder};`,
  )
  const http = `http {\n access_log off;\n${paths.join('\n')}`
  const head = `daemon off;\nmaster_process off;\npid ${folder}/pid;\nerror_log stderr notice;\n`
  return head + text.replace('http {', http)
}
