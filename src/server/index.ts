export { type Dashboard, dashboard } from './dashboard.js'
export type { DashboardOptions } from './options.js'
export type { AuditEntry } from './shapes.js'
